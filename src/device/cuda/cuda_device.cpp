// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_device.hpp"

#include <cuda_profiler_api.h>

#include "base/error.hpp"
#include "base/gpu_architecture.hpp"
#include "device/cuda/cuda_train_ops.hpp"
#include "device/cuda/gemm.hpp"
#include "device/train_ops.hpp"
#include "kernels/clock.hpp"

namespace assay::cuda {
namespace {

constexpr std::size_t scratch_bytes = std::size_t{64} << 10;

cudaDeviceProp properties_of(int ordinal) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  return properties;
}

std::string compute_text(const cudaDeviceProp& properties) {
  return std::to_string(properties.major) + "." + std::to_string(properties.minor);
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

CudaDevice::CudaDevice(int ordinal, std::shared_ptr<const Buffer> lender)
    : ordinal_(ordinal), properties_(properties_of(ordinal)), lender_(std::move(lender)) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  if (lender_)
    check(cudaEventCreateWithFlags(&waiting_, cudaEventBlockingSync | cudaEventDisableTiming),
          "cudaEventCreate");
  scratch_ = Buffer(scratch_bytes);
  clocks_ = Buffer(2 * clock_count() * sizeof(kernels::ClockPair));
  train_ops_ = make_cuda_train_ops(stream_);
}

void CudaDevice::use_in_thread() const { check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

/// At the highest clock that the driver names, which is above the one that makers' figures assume: H100
/// at 1.98 GHz has 1070, not 989.
double CudaDevice::nominal_peak_flops(NumType type) const noexcept {
  int khz = 0;
  if (cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, ordinal_) != cudaSuccess) return 0;
  const GpuArchitecture* const architecture = gpu_architecture(compute_text(properties_));
  if (architecture == nullptr) return 0;
  return 1e3 * khz * properties_.multiProcessorCount * architecture->operations(to_string(type));
}

std::size_t CudaDevice::clock_count() const noexcept {
  return static_cast<std::size_t>(properties_.multiProcessorCount);
}

void CudaDevice::profile(bool begins) noexcept {
  if (begins)
    cudaProfilerStart();
  else
    cudaProfilerStop();
}

void CudaDevice::begin_clock() {
  kernels::cuda::read_clocks(clocks_.as<kernels::ClockPair>(), clock_count(), stream_);
}

void CudaDevice::end_clock() {
  kernels::cuda::read_clocks(clocks_.as<kernels::ClockPair>() + clock_count(), clock_count(), stream_);
}

double CudaDevice::clock_hz() {
  std::vector<kernels::ClockPair> pairs(2 * clock_count());
  copy_to_host(pairs.data(), clocks_.as<void>(), pairs.size() * sizeof(pairs[0]));
  return kernels::clock_rate(pairs.data(), pairs.data() + clock_count(), clock_count());
}

CudaDevice::~CudaDevice() {
  train_ops_.reset();
  gemm_.reset();
  if (waiting_ != nullptr) cudaEventDestroy(waiting_);
  cudaStreamDestroy(stream_);
}

std::string CudaDevice::description() const {
  return std::string(properties_.name) + ", " + std::to_string(properties_.multiProcessorCount) +
         " SMs, compute " + compute_text(properties_) + ", " + blas();
}

/// Equal bits are promised between GPUs for which all this is equal.
std::map<std::string, std::string> CudaDevice::identity() const {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {{"device", "cuda"},
          {"gpu", properties_.name},
          {"compute", compute_text(properties_)},
          {"multiprocessors", std::to_string(properties_.multiProcessorCount)},
          {"blas", blas()},
          {"cuda", version_text(runtime)},
          {"driver", version_text(driver)}};
}

void CudaDevice::reserve(std::size_t bytes) {
  if (bytes <= arena_->bytes()) return;
  synchronize();
  *arena_ = Buffer();  // first, or both would have to fit
  *arena_ = Buffer(bytes);
  // Freshly allocated memory is only there once it was written.
  check(cudaMemsetAsync(arena_->as<void>(), 0, arena_->bytes(), stream_), "cudaMemset");
  synchronize();
}

void CudaDevice::synchronize() {
  if (waiting_ != nullptr) {
    check(cudaEventRecord(waiting_, stream_), "cudaEventRecord");
    check(cudaEventSynchronize(waiting_), "the GPU");
  } else {
    check(cudaStreamSynchronize(stream_), "the GPU");
  }
  check_launch("the GPU");
}

void CudaDevice::copy_to_host(void* host, const void* device, std::size_t bytes) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
  synchronize();
}

void CudaDevice::copy_to_device(void* device, const void* host, std::size_t bytes) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpy");
  synchronize();
}

bool CudaDevice::supports(NumType type) const noexcept { return Gemm::supports(properties_, type); }

Gemm& CudaDevice::gemm() const {
  if (!gemm_) gemm_ = std::make_unique<Gemm>(properties_, stream_);
  return *gemm_;
}

std::string CudaDevice::no_products() const {
  try {
    gemm();
    return "";
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::device) throw;
    return e.what();
  }
}

std::string CudaDevice::blas() const {
  return no_products().empty() ? "cuBLASLt " + gemm().version() : "no cuBLASLt";
}

void CudaDevice::matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) {
  gemm().run(type, shape, a, b, c);
}

std::optional<GemmAlgorithm> CudaDevice::tune(NumType type, const Matmul& shape, const void* a, const void* b,
                                              void* c) {
  return gemm().tune(type, shape, a, b, c);
}

void CudaDevice::set_algorithm(NumType type, const Matmul& shape, const GemmAlgorithm& algorithm) {
  gemm().set_algorithm(type, shape, algorithm);
}

}  // namespace assay::cuda
