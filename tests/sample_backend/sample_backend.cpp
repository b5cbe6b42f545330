// SPDX-License-Identifier: Apache-2.0
// A second kind of GPUs: one, which is the host in truth.
#include "device/sample/sample_backend.hpp"
#include "transport/sample/sample_transports.hpp"

namespace assay {
namespace {

class SampleBackend final : public DeviceBackend {
 public:
  std::string_view name() const noexcept override { return "sample"; }
  bool built() const noexcept override { return true; }
  std::string description() const override { return "of a test"; }
  std::vector<VisibleGpu> visible(std::string&, std::vector<std::string>*) const override {
    return {{0, "SAMPLE-0", "0000:00:00.0", "sample", 1e9, 1, 1, 0}};
  }
  double free_bytes(const std::string&) const override { return 1e9; }
  double sweep_rate(const std::string&) const override { return 1e9; }
  std::unique_ptr<Device> make_device(const std::string&) const override {
    return make_host_device({0}, {-1}, false);
  }
};

}  // namespace

const DeviceBackend& sample_backend() {
  static const SampleBackend backend;
  return backend;
}

const GpuTransports* sample_transports() { return nullptr; }
std::vector<GpuTransportInfo> sample_transport_infos() { return {{"sample", false, "not built"}}; }

}  // namespace assay
