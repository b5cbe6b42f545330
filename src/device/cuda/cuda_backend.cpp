// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_backend.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.hpp"
#include "device/cuda/cuda_device.hpp"
#include "kernels/pattern.hpp"

namespace assay {
namespace {

/// A slice of a GPU has a UUID of its own, and a name such as "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
std::string uuid_text(const cudaUUID_t& uuid, const char* name) {
  std::string text = std::strstr(name, " MIG ") != nullptr ? "MIG" : "GPU";
  for (int i = 0; i < 16; ++i) {
    char digits[4];
    std::snprintf(digits, sizeof(digits), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

VisibleGpu describe(int ordinal) {
  cudaDeviceProp p;
  cuda::check(cudaGetDeviceProperties(&p, ordinal), "cudaGetDeviceProperties");
  char pci[32];
  std::snprintf(pci, sizeof(pci), "%04x:%02x:%02x.0", static_cast<unsigned>(p.pciDomainID),
                static_cast<unsigned>(p.pciBusID), static_cast<unsigned>(p.pciDeviceID));
  return {ordinal,
          uuid_text(p.uuid, p.name),
          pci,
          p.name,
          static_cast<double>(p.totalGlobalMem),
          p.multiProcessorCount,
          p.major,
          p.minor};
}

/// Without a driver the runtime calls it too old.
std::string reason(cudaError_t error) {
  int driver = 0;
  if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    return "no NVIDIA driver on this machine";
  return cudaGetErrorString(error);
}

/// Throws Error(resource) where this build has no code for the current GPU, which is no fault of it.
void check_code(cudaError_t started) {
  constexpr std::array none = {cudaErrorNoKernelImageForDevice, cudaErrorInvalidDeviceFunction,
                               cudaErrorUnsupportedPtxVersion};
  if (std::find(none.begin(), none.end(), started) == none.end())
    return cuda::check(started, "a first sweep over the memory");
  int device = 0, major = 0, minor = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
              "cudaDeviceGetAttribute");
  cuda::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
              "cudaDeviceGetAttribute");
  throw Error(ErrorKind::resource, "this assay has no code for its compute capability " +
                                       std::to_string(major) + "." + std::to_string(minor) +
                                       ": it was built for " ASSAY_CUDA_ARCHITECTURES);
}

class Backend final : public DeviceBackend {
 public:
  std::string_view name() const noexcept override { return "cuda"; }
  bool built() const noexcept override { return true; }
  std::string_view pci_vendor() const noexcept override { return "0x10de"; }
  std::string description() const override {
    return "CUDA " ASSAY_CUDA_VERSION " for " ASSAY_CUDA_ARCHITECTURES;
  }

  std::vector<VisibleGpu> visible(std::string& why, std::vector<std::string>* lost) const override {
    // As NVML numbers them, before the runtime looks; who says otherwise keeps it.
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
      cudaGetLastError();  // it is told here, and must not be met again
      why = reason(error);
      return {};
    }
    std::vector<VisibleGpu> gpus;
    for (int i = 0; i < count; ++i) {
      try {
        gpus.push_back(describe(i));
      } catch (const Error& e) {
        if (lost != nullptr)
          lost->push_back("GPU " + std::to_string(i) + " of this process cannot be described (" + e.what() +
                          ")");
      }
    }
    if (gpus.empty()) why = "no GPU is visible to this process";
    return gpus;
  }

  double free_bytes(const std::string& uuid) const override {
    cuda::check(cudaSetDevice(ordinal_of(uuid)), "cudaSetDevice");
    std::size_t free = 0, total = 0;
    cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return static_cast<double>(free);
  }

  double sweep_rate(const std::string& uuid) const override {
    constexpr double enough_s = 2e-3;
    const auto most = std::min(static_cast<std::size_t>(free_bytes(uuid) / 4), std::size_t{256} << 20);
    kernels::Sweep write, check;
    write.write = check.verify = check.write = true;
    write.next.kind = check.expected.kind = check.next.kind = kernels::Background::own_address;
    const cuda::Buffer errors(kernels::cuda::errors_bytes(1));
    auto* found = errors.as<kernels::DeviceErrors>();
    kernels::cuda::clear_errors(found, 1, nullptr);
    // An emulation or a GPU that many share takes as long for a megabyte as others for all of it.
    for (std::size_t bytes = std::size_t{1} << 20;; bytes *= 4) {
      const cuda::Buffer region(std::min(bytes, most));
      auto* words = region.as<std::uint64_t>();
      const std::size_t count = region.bytes() / sizeof(std::uint64_t);
      double begin = 0;
      for (std::uint64_t turn = 0; turn < 3;
           ++turn) {  // the first write, a first time for the kernel that is timed, and that
        begin = now_s();
        kernels::cuda::sweep(turn == 0 ? write : check, words, count, turn, found, nullptr);
        cuda::check(cudaDeviceSynchronize(), "a first sweep over the memory");
        check_code(cudaGetLastError());
      }
      const double seconds = now_s() - begin;
      if (seconds >= enough_s || bytes >= most) return static_cast<double>(2 * region.bytes()) / seconds;
    }
  }

  std::unique_ptr<Device> make_device(const std::string& uuid) const override {
    return std::make_unique<cuda::CudaDevice>(ordinal_of(uuid));
  }

 private:
  int ordinal_of(const std::string& uuid) const {
    std::string why;
    for (const VisibleGpu& gpu : visible(why, nullptr))
      if (gpu.uuid == uuid) return gpu.ordinal;
    throw Error(ErrorKind::device, "the GPU " + uuid + " is not visible to this process");
  }
};

}  // namespace

const DeviceBackend& cuda_backend() {
  static const Backend backend;
  return backend;
}

}  // namespace assay
