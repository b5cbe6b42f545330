// SPDX-License-Identifier: Apache-2.0
// As much of a GPU as training needs, over the emulation: its kernels, and matrix products by plain loops.
#pragma once

#include <cuda_runtime.h>

#include <cstring>
#include <map>
#include <stdexcept>
#include <vector>

#include "device/cuda/check.hpp"
#include "device/cuda/cuda_train_ops.hpp"
#include "device/device.hpp"
#include "kernels/bfloat.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"

namespace assay::test {

class EmulatedTrainDevice final : public Device {
 public:
  EmulatedTrainDevice() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    ops_ = cuda::make_cuda_train_ops(stream_);
  }
  ~EmulatedTrainDevice() override {
    ops_.reset();
    cudaFree(arena_);
    cudaStreamDestroy(stream_);
  }

  std::string_view kind() const noexcept override { return "cuda"; }
  std::string description() const override { return "emulated"; }
  std::map<std::string, std::string> identity() const override { return {}; }
  int threads() const noexcept override { return 1; }
  void reserve(std::size_t bytes) override {
    cuda::check(cudaMalloc(&arena_, bytes), "cudaMalloc");
    cuda::check(cudaMemset(arena_, 0xff, bytes), "cudaMemset");  // NaNs
    bytes_ = bytes;
  }
  std::span<std::byte> arena() noexcept override { return {static_cast<std::byte*>(arena_), bytes_}; }
  void synchronize() override { cuda::check(cudaStreamSynchronize(stream_), "synchronize"); }
  void* stream() noexcept override { return stream_; }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    synchronize();
    std::memcpy(host, device, bytes);
  }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    synchronize();
    std::memcpy(device, host, bytes);
  }
  bool supports(NumType type) const noexcept override { return ops_->supports(type); }
  TrainOps* train_ops() noexcept override { return ops_.get(); }
  void gemm(NumType type, const GemmShape& s, const void* a, const void* b, void* c) override {
    matmul(type, {s.m, s.n, s.k, false, false, false}, a, b, c);
  }
  /// Summed in fp32, as on tensor cores.
  void matmul(NumType type, const Matmul& s, const void* a, const void* b, void* c) override {
    synchronize();
    /// As [rows, columns], whichever way it is stored.
    const auto widened = [type](const void* p, std::size_t rows, std::size_t columns, bool transposed) {
      std::vector<float> all(rows * columns);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const std::size_t at = transposed ? i % columns * rows + i / columns : i;
        all[i] = type == NumType::fp32 ? static_cast<const float*>(p)[at] : kernels::to_float(static_cast<const kernels::Bfloat*>(p)[at]);
      }
      return all;
    };
    const auto left = widened(a, s.m, s.k, s.transpose_a), right = widened(b, s.k, s.n, s.transpose_b);
    std::vector<float> row(s.n);
    for (std::size_t i = 0; i < s.m; ++i) {
      row.assign(s.n, 0.0f);
      for (std::size_t l = 0; l < s.k; ++l) {
        const float x = left[i * s.k + l], *const y = right.data() + l * s.n;
        for (std::size_t j = 0; j < s.n; ++j) row[j] += x * y[j];
      }
      for (std::size_t j = 0; j < s.n; ++j) {
        if (type == NumType::fp32 || s.output == Output::exact)
          static_cast<float*>(c)[i * s.n + j] = row[j];
        else
          static_cast<kernels::Bfloat*>(c)[i * s.n + j] = kernels::to_bfloat(row[j]);
      }
    }
  }
  void fill_uniform(NumType, void* data, std::size_t count, std::uint64_t key) override {
    synchronize();
    kernels::host::fill_uniform_fp32(static_cast<float*>(data), count, key, 0);
  }
  std::uint64_t digest(const void* data, std::size_t bytes) override {
    synchronize();
    return kernels::host::digest(data, bytes, 0);
  }

  double fma_peak(NumType, double) override { return no<double>(); }
  void fill_integer(NumType, void*, std::size_t, std::uint64_t, int) override { no<void>(); }
  void stream(kernels::StreamOp, double*, const double*, const double*, std::size_t) override { no<void>(); }
  double chase_ns(void*, std::size_t, std::size_t, std::uint64_t) override { return no<double>(); }
  void sweep(const kernels::Sweep&, std::uint64_t*, std::size_t, kernels::ErrorLog&) override { no<void>(); }
  int numa_of_thread(int) const noexcept override { return -1; }

 private:
  template <typename T>
  [[noreturn]] static T no() {
    throw std::logic_error("training does not use this");
  }

  cudaStream_t stream_ = nullptr;
  void* arena_ = nullptr;
  std::size_t bytes_ = 0;
  std::unique_ptr<TrainOps> ops_;
};

}  // namespace assay::test
