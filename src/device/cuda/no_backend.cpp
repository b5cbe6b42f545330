// SPDX-License-Identifier: Apache-2.0
// The build without CUDA.
#include "base/error.hpp"
#include "device/cuda/cuda_backend.hpp"

namespace assay {
namespace {

class NoBackend final : public DeviceBackend {
 public:
  std::string_view name() const noexcept override { return "cuda"; }
  bool built() const noexcept override { return false; }
  std::string description() const override { return "no CUDA Toolkit where this was built"; }
  std::vector<VisibleGpu> visible(std::string& why, std::vector<std::string>*) const override {
    why = "built without CUDA";
    return {};
  }
  double free_bytes(const std::string&) const override {
    throw Error(ErrorKind::device, "built without CUDA");
  }
  double sweep_rate(const std::string&) const override {
    throw Error(ErrorKind::device, "built without CUDA");
  }
  std::unique_ptr<Device> make_device(const std::string&) const override {
    throw Error(ErrorKind::device, "built without CUDA");
  }
};

}  // namespace

const DeviceBackend& cuda_backend() {
  static const NoBackend backend;
  return backend;
}

}  // namespace assay
