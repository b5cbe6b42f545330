// SPDX-License-Identifier: Apache-2.0
// Tests of kernels/cuda/*.cu against the host kernels. One source makes two executables:
// `emulated_kernel_tests` runs the kernels on the host, `cuda_kernel_tests` on a GPU (and skips with the
// reason where there is none).
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "fresh.hpp"

namespace assay::test {

/// A fixture that skips where no GPU can be used.
template <typename Base>
class CudaKernelOn : public Base {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) GTEST_SKIP() << "no GPU here: " << cudaGetErrorString(error);
  }
  /// What was queued has run, without error.
  static void finish() {
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaGetLastError(), cudaSuccess);
  }
};

using CudaKernel = CudaKernelOn<testing::Test>;
using FreshCudaKernel = CudaKernelOn<LinkRetest>;

/// Device memory that starts as a copy of `values`, or as garbage.
template <typename T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count) : count_(count) {
    if (cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)) != cudaSuccess)
      throw std::bad_alloc();
    if (cudaMemset(data_, 0xa5, count * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) {
    if (cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) != cudaSuccess)
      throw std::bad_alloc();
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* get() const { return data_; }
  std::size_t size() const { return count_; }
  /// After all that was queued.
  std::vector<T> host() const {
    std::vector<T> values(count_);
    if (cudaDeviceSynchronize() != cudaSuccess ||
        cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess)
      throw std::bad_alloc();
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace assay::test
