// SPDX-License-Identifier: Apache-2.0
#include "test_gpu.hpp"

#include "device/cuda/check.hpp"

namespace assay::test {

using cuda::check;

TestGpu::TestGpu(int ordinal) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  void* errors = nullptr;
  check(cudaMalloc(&errors, sizeof *errors_), "cudaMalloc");
  errors_ = static_cast<kernels::ExactErrors*>(errors);
}

TestGpu::~TestGpu() {
  cudaFree(arena_.data());
  cudaFree(errors_);
  cudaStreamDestroy(stream_);
}

void TestGpu::reserve(std::size_t bytes) {
  if (bytes <= arena_.size()) return;
  check(cudaFree(arena_.data()), "cudaFree");
  void* data = nullptr;
  check(cudaMalloc(&data, bytes), "cudaMalloc");
  arena_ = {static_cast<std::byte*>(data), bytes};
}

void TestGpu::synchronize() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

void TestGpu::copy_to_host(void* host, const void* device, std::size_t bytes) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  synchronize();
}

void TestGpu::copy_to_device(void* device, const void* host, std::size_t bytes) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  synchronize();
}

/// Queued, as on any GPU: it is there after `synchronize`.
void TestGpu::payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes) {
  const auto text = std::make_shared<std::vector<std::byte>>(bytes);
  kernels::host::payload_fill(key, text->data(), bytes);
#ifdef ASSAY_CUDA_EMULATION
  emulation::enqueue(stream_, [=] { std::memcpy(data, text->data(), bytes); });
#else
  copy_to_device(data, text->data(), bytes);
#endif
}

kernels::PayloadErrors TestGpu::payload_check(kernels::PayloadKey key, const void* data, std::size_t bytes) {
  std::vector<std::byte> text(bytes);
  copy_to_host(text.data(), data, bytes);
  return kernels::host::payload_check(key, text.data(), bytes);
}

void TestGpu::exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data,
                         std::size_t count) {
  kernels::cuda::exact_fill(line, first, data, count, stream_);
}

kernels::ExactErrors TestGpu::exact_check(const kernels::ExactLine& line, std::uint64_t first,
                                          const float* data, std::size_t count) {
  kernels::cuda::exact_check(line, first, data, count, errors_, stream_);
  kernels::ExactErrors errors;
  copy_to_host(&errors, errors_, sizeof errors);
  return errors;
}

std::unique_ptr<TestGpu> gpu_of_rank(int local_rank, std::string& why) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    why = std::string("no GPU here: ") + cudaGetErrorString(error);
    return nullptr;
  }
  if (local_rank >= count) {
    why = std::to_string(count) + " GPUs are too few";
    return nullptr;
  }
  return std::make_unique<TestGpu>(local_rank);
}

}  // namespace assay::test
