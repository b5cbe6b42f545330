// SPDX-License-Identifier: Apache-2.0
// Private to src/device/cuda.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/chain.hpp"
#include "device/cuda/check.hpp"
#include "device/device.hpp"
#include "device/memory_ops.hpp"

namespace assay::cuda {

/// Device memory that belongs to its owner; garbage at first.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0) check(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  template <typename T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Gemm;

/// One GPU and one stream on which all operations are queued.
class CudaDevice final : public Device {
 public:
  /// `lender`: for a second stream, the arena of the first one; reading it evicts the L2 cache without memory
  /// of its own. Throws Error(device).
  explicit CudaDevice(int ordinal, std::shared_ptr<const Buffer> lender = nullptr);
  ~CudaDevice() override;

  std::string_view kind() const noexcept override { return "cuda"; }
  bool has_own_memory() const noexcept override { return true; }
  bool has_streams() const noexcept override { return true; }
  std::string description() const override;
  std::map<std::string, std::string> identity() const override;
  int threads() const noexcept override { return 1; }

  void reserve(std::size_t bytes) override;
  std::span<std::byte> arena() noexcept override { return {arena_->as<std::byte>(), arena_->bytes()}; }
  void synchronize() override;
  std::unique_ptr<Device> second_stream() const override {
    return std::make_unique<CudaDevice>(ordinal_, arena_);
  }
  void use_in_thread() const override;
  void* stream() noexcept override { return stream_; }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override;
  void copy_to_device(void* device, const void* host, std::size_t bytes) override;

  bool supports(NumType type) const noexcept override;
  std::string no_products() const override;
  void matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) override;
  std::optional<GemmAlgorithm> tune(NumType type, const Matmul& shape, const void* a, const void* b,
                                    void* c) override;
  void set_algorithm(NumType type, const Matmul& shape, const GemmAlgorithm& algorithm) override;
  TrainOps* train_ops() noexcept override { return train_ops_.get(); }
  double fma_peak(NumType type, double seconds) override;
  double nominal_peak_flops(NumType type) const noexcept override;
  void profile(bool begins) noexcept override;
  bool measures_clock() const noexcept override { return true; }
  void begin_clock() override;
  void end_clock() override;
  double clock_hz() override;

  void fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) override;
  void fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) override;
  std::uint64_t digest(const void* data, std::size_t bytes) override;
  std::vector<std::uint64_t> digests(std::span<const void* const> data, std::size_t bytes) override;
  void poison(void* data, std::size_t bytes, std::size_t step) override;
  void stream(kernels::StreamOp op, double* a, const double* b, const double* c, std::size_t count) override;
  ChaseTime chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) override;
  void sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count,
             kernels::ErrorLog& log) override;
  void payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes) override;
  kernels::PayloadErrors payload_check(kernels::PayloadKey key, const void* data, std::size_t bytes) override;
  void exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data,
                  std::size_t count) override;
  kernels::ExactErrors exact_check(const kernels::ExactLine& line, std::uint64_t first, const float* data,
                                   std::size_t count) override;
  std::size_t cache_bytes() const noexcept override {
    return static_cast<std::size_t>(properties_.l2CacheSize);
  }
  MemoryOps* memory_ops() override;

  int numa_of_thread(int) const noexcept override { return -1; }

 private:
  /// Opens cuBLASLt at the first call: all else works without it. Throws Error(device).
  Gemm& gemm() const;
  std::string blas() const;  ///< "cuBLASLt 13.1.0"
  std::size_t clock_count() const noexcept;
  /// Memory whose read pushes all else out of the L2 cache: a part of the arena or of the lender's, or some
  /// of its own. Less where there is no more.
  std::span<const std::byte> evicting();

  int ordinal_;
  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t waiting_ = nullptr;  ///< of a second stream, whose thread sleeps while it waits
  std::shared_ptr<Buffer> arena_ = std::make_shared<Buffer>();
  std::shared_ptr<const Buffer> lender_;
  Buffer evicting_;
  Buffer scratch_;            ///< 64 KiB for sums and counts
  Buffer clocks_;             ///< of all multiprocessors, before and after
  Buffer errors_;             ///< of sweeps
  std::uint64_t sweeps_ = 0;  ///< so far: each is shared out to multiprocessors in another way
  Chain chain_;
  std::unique_ptr<MemoryOps> memory_ops_;
  mutable std::unique_ptr<Gemm> gemm_;
  std::unique_ptr<TrainOps> train_ops_;
};

}  // namespace assay::cuda
