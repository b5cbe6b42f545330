// SPDX-License-Identifier: Apache-2.0
// Includes the headers of the libraries only to ask for their versions.
#include "cli/build_info.hpp"

#include <H5public.h>
#include <fmt/format.h>
#include <hwloc.h>
#include <toml++/toml.h>
#include <CLI/Version.hpp>
#include <boost/version.hpp>

#include "assay/version.hpp"
#include "base/confined.hpp"
#include "base/json.hpp"
#include "cli/components.hpp"
#include "device/backend.hpp"
#include "device/device.hpp"
#include "supervisor/handshake.hpp"
#include "transport/gpu_transports.hpp"
#include "transport/mpi_communicator.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay::cli {
namespace {

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

/// The API version is asked of the library that was loaded; the rest is of the header.
std::string hwloc_version() {
  const unsigned v = hwloc_get_api_version();
  return fmt::format("{} (API {}.{})", HWLOC_VERSION, v >> 16, (v >> 8) & 0xffU);
}

std::string blas_version() {
  const auto info = blas_info();
  const auto part = [&](const char* key) {
    const auto it = info.find(key);
    return it == info.end() ? std::string() : it->second;
  };
  std::string text = part("library");
  for (const char* key : {"core", "parallel"}) {
    if (!part(key).empty()) text.append(1, ' ').append(part(key));
  }
  return text;
}

std::string found(const char* version) {
  return version[0] == '\0' ? "not found" : fmt::format("{} found", version);
}

/// Which GPUs would be used, or why none is.
std::string detail_of(const DeviceBackend& backend) {
  if (!backend.built()) return "not built: " + backend.description();
  std::string why;
  const auto gpus = backend.visible(why);
  if (gpus.empty()) return fmt::format("built: {}; no GPU is used here: {}", backend.description(), why);
  std::string text = fmt::format("built: {}; {} GPU{} here:", backend.description(), gpus.size(),
                                 gpus.size() == 1 ? "" : "s");
  for (const VisibleGpu& gpu : gpus) text += fmt::format(" {} ({})", gpu.name, gpu.pci);
  return text;
}

std::string components_text(const char* title, const std::vector<Component>& components) {
  std::string out = std::string(title) + "\n";
  for (const Component& c : components) out += fmt::format("  {:<14} {}\n", c.name, c.detail);
  return out;
}

}  // namespace

std::vector<Component> device_components() {
  std::vector<Component> all{{"host", true, "built: CPU cores and their memory, BLAS " + blas_version()}};
  for (const DeviceBackend* backend : device_backends())
    all.push_back({std::string(backend->name()), backend->built(), detail_of(*backend)});
  return all;
}

std::vector<Component> transport_components() {
  const std::string ucx_version = UcxCommunicator::version();
  std::vector<Component> all{{"mpi", true, "built: " + mpi_versions()["mpi"]},
                             ucx_version.empty()
                                 ? Component{"ucx", false, "not built: no UCX where this was built"}
                                 : Component{"ucx", true, "built: UCX " + ucx_version}};
  for (const GpuTransportInfo& info : gpu_transport_infos())
    all.push_back({info.name, info.built, info.detail});
  return all;
}

std::vector<Component> reading_components() { return {{"files", true, describe_confinement()}}; }

std::string version_text() {
  std::string out = fmt::format("assay {} ({})\nLibraries\n", ASSAY_VERSION, ASSAY_BUILD_TYPE);
  const auto line = [&](const char* name, const std::string& version) {
    out += fmt::format("  {:<14} {}\n", name, version);
  };
  line("MPI", mpi_versions()["mpi"]);
  line("BLAS", blas_version());
  line("HDF5", hdf5_version());
  line("hwloc", hwloc_version());
  line("CLI11", CLI11_VERSION);
  line("fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  line("toml++", fmt::format("{}.{}.{}", TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH));
  line("nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                    NLOHMANN_JSON_VERSION_PATCH));
  line("Boost",
       fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100));
  line("libsodium", supervisor::handshake_library_version());
  line("Random123", "headers only, without a version");
  line("CUDA toolkit", found(components::cuda_version));
  line("NCCL", found(components::nccl_version));
  line("UCX", found(UcxCommunicator::version().c_str()));
  out += components_text("Devices", device_components());
  out += components_text("Transports", transport_components());
  return out + components_text("Reading", reading_components());
}

}  // namespace assay::cli
