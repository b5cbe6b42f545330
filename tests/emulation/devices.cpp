// SPDX-License-Identifier: Apache-2.0
// What the emulated runtime says of its devices, and the names of its errors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gpus.hpp"
#include "runtime.hpp"

namespace emulation {

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

bool has_fault(int device, const char* fault) {
  return gpus()[static_cast<std::size_t>(device)].fault == fault;
}
bool is_device(int device) { return device >= 0 && device < static_cast<int>(gpus().size()); }

}  // namespace emulation

using namespace emulation;

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  if (!is_device(device)) return keep(cudaErrorInvalidDevice);
  if (has_fault(device, "lost")) return keep(cudaErrorUnknown);
  const Gpu& gpu = gpus()[static_cast<std::size_t>(device)];
  *p = {};
  std::snprintf(p->name, sizeof(p->name), "%s", gpu.name.c_str());
  std::string digits;
  for (const char c : gpu.uuid.substr(std::min<std::size_t>(4, gpu.uuid.size())))
    if (c != '-') digits += c;
  for (std::size_t i = 0; i < 16 && 2 * i + 1 < digits.size(); ++i)
    p->uuid.bytes[i] = static_cast<char>(std::strtoul(digits.substr(2 * i, 2).c_str(), nullptr, 16));
  p->totalGlobalMem = gpu.memory_bytes;
  p->sharedMemPerBlockOptin = 227 * 1024;
  p->major = gpu.major;
  p->minor = gpu.minor;
  p->multiProcessorCount = gpu.sm_count;
  p->l2CacheSize = 1 << 20;
  p->memoryBusWidth = 5120;
  p->maxThreadsPerMultiProcessor = 2048;
  p->ECCEnabled = gpu.ecc ? 1 : 0;
  unsigned domain = 0, bus = 0, slot = 0;
  std::sscanf(gpu.pci.c_str(), "%x:%x:%x", &domain, &bus, &slot);
  p->pciDomainID = static_cast<int>(domain);
  p->pciBusID = static_cast<int>(bus);
  p->pciDeviceID = static_cast<int>(slot);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 * 1024; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrMemoryClockRate: *value = 1000000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrHostNumaId: *value = -1; break;
    default: return keep(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID,
                p.pciDeviceID);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = gpus().empty() ? 0 : 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t error) { return error == cudaSuccess ? "cudaSuccess" : "cudaError"; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInitializationError: return "initialization error";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    default: return "an error of the emulation";
  }
}
