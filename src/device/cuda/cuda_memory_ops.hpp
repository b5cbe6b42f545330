// SPDX-License-Identifier: Apache-2.0
// Private to src/device/cuda.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/cuda/cuda_device.hpp"
#include "device/memory_ops.hpp"

namespace assay::cuda {

/// Runs `work` on a thread that may use these CPUs only; false, and not run, where the system refuses that.
bool run_on(const std::vector<int>& cpus, const std::function<void()>& work);

class CudaMemoryOps final : public MemoryOps {
 public:
  CudaMemoryOps(const cudaDeviceProp& properties, cudaStream_t stream);
  ~CudaMemoryOps() override;
  CudaMemoryOps(const CudaMemoryOps&) = delete;
  CudaMemoryOps& operator=(const CudaMemoryOps&) = delete;

  OnChipResult on_chip(OnChip test, std::uint64_t key) override;
  void* host_buffer(int numa, std::size_t bytes) override;
  std::string host_buffer_way() const override { return host_way_; }
  void start_copy(CopyWay way, CopyBy by, void* to, const void* from, std::size_t bytes) override;
  void finish_copies() override;

 private:
  std::uint64_t run_once(OnChip test, std::uint64_t key, kernels::DeviceErrors* errors,
                         std::uint32_t* visited);
  void release() noexcept;
  template <typename T>
  T* as_threads_see(T* p) const noexcept;

  const cudaDeviceProp& properties_;
  cudaStream_t stream_;          ///< of the device
  cudaStream_t copies_[2] = {};  ///< to the device or inside it, and to the host
  Buffer region_, errors_;
  void* host_ = nullptr;
  std::byte* host_by_threads_ = nullptr;  ///< its address for kernels
  std::size_t host_bytes_ = 0;
  const char* host_way_ = "";
};

}  // namespace assay::cuda
