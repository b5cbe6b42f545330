// SPDX-License-Identifier: Apache-2.0
// A GPU with what transports and suites that measure them need, and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "device/device.hpp"

namespace assay::test {

class TestGpu final : public Device {
 public:
  explicit TestGpu(int ordinal);
  ~TestGpu() override;

  std::string_view kind() const noexcept override { return "cuda"; }
  bool has_own_memory() const noexcept override { return true; }
  bool has_streams() const noexcept override { return true; }
  std::string description() const override { return "GPU of a test"; }
  std::map<std::string, std::string> identity() const override { return {}; }
  int threads() const noexcept override { return 1; }
  void reserve(std::size_t bytes) override;
  std::span<std::byte> arena() noexcept override { return arena_; }
  void synchronize() override;
  void* stream() noexcept override { return stream_; }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override;
  void copy_to_device(void* device, const void* host, std::size_t bytes) override;
  void payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes) override;
  kernels::PayloadErrors payload_check(kernels::PayloadKey key, const void* data, std::size_t bytes) override;
  void exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data,
                  std::size_t count) override;
  kernels::ExactErrors exact_check(const kernels::ExactLine& line, std::uint64_t first, const float* data,
                                   std::size_t count) override;

  bool supports(NumType) const noexcept override { return false; }
  void matmul(NumType, const Matmul&, const void*, const void*, void*) override { none(); }
  double fma_peak(NumType, double) override { return 0; }
  void fill_uniform(NumType, void*, std::size_t, std::uint64_t) override { none(); }
  void fill_integer(NumType, void*, std::size_t, std::uint64_t, int) override { none(); }
  std::uint64_t digest(const void*, std::size_t) override { return 0; }
  void stream(kernels::StreamOp, double*, const double*, const double*, std::size_t) override { none(); }
  ChaseTime chase(void*, std::size_t, std::size_t, std::uint64_t) override { return {}; }
  void sweep(const kernels::Sweep&, std::uint64_t*, std::size_t, kernels::ErrorLog&) override { none(); }
  int numa_of_thread(int) const noexcept override { return -1; }

 private:
  [[noreturn]] static void none() { throw Error(ErrorKind::device, "the GPU of a test does not compute"); }

  cudaStream_t stream_ = nullptr;
  std::span<std::byte> arena_;
  kernels::ExactErrors* errors_ = nullptr;  ///< on the device
};

/// The GPU of a rank of one node; null, and the reason in `why`, when there is none for it.
std::unique_ptr<TestGpu> gpu_of_rank(int local_rank, std::string& why);

/// An array in the arena of a device, and what is in it.
template <typename T>
class OnGpu {
 public:
  OnGpu(Device& device, std::size_t offset_bytes, std::size_t count)
      : device_(device), data_(reinterpret_cast<T*>(device.arena().data() + offset_bytes)), count_(count) {}
  OnGpu(Device& device, std::size_t offset_bytes, const std::vector<T>& values)
      : OnGpu(device, offset_bytes, values.size()) {
    set(values);
  }
  void set(const std::vector<T>& values) {
    device_.copy_to_device(data_, values.data(), values.size() * sizeof(T));
  }
  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    device_.copy_to_host(values.data(), data_, count_ * sizeof(T));
    return values;
  }

 private:
  Device& device_;
  T* data_;
  std::size_t count_;
};

}  // namespace assay::test
