// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "device/cuda/cuda_device.hpp"
#include "kernels/digest.hpp"

namespace assay::cuda {
namespace {
[[noreturn]] void later(const char* what) { throw Error(ErrorKind::device, std::string("GPUs have no ") + what + " yet"); }
}  // namespace

double CudaDevice::fma_peak(NumType, double) { later("FMA loop"); }
void CudaDevice::fill_uniform(NumType, void*, std::size_t, std::uint64_t) { later("random fill"); }
void CudaDevice::fill_integer(NumType, void*, std::size_t, std::uint64_t, int) { later("integer fill"); }
void CudaDevice::stream(kernels::StreamOp, double*, const double*, const double*, std::size_t) { later("stream"); }
double CudaDevice::chase_ns(void*, std::size_t, std::size_t, std::uint64_t) { later("chase"); }
void CudaDevice::sweep(const kernels::Sweep&, std::uint64_t*, std::size_t, kernels::ErrorLog&) { later("patterns"); }
void CudaDevice::payload_fill(kernels::PayloadKey, void*, std::size_t) { later("payloads"); }
kernels::PayloadErrors CudaDevice::payload_check(kernels::PayloadKey, const void*, std::size_t) { later("payloads"); }

std::uint64_t CudaDevice::digest(const void* data, std::size_t bytes) {
  auto* sum = scratch_.as<std::uint64_t>();
  check(cudaMemsetAsync(sum, 0, sizeof(*sum), stream_), "cudaMemset");
  kernels::cuda::digest(data, bytes, 0, sum, stream_);
  check_launch("digest");
  std::uint64_t result = 0;
  copy_to_host(&result, sum, sizeof(result));
  return result;
}

}  // namespace assay::cuda
