// SPDX-License-Identifier: Apache-2.0
#include "gpus.hpp"

#include <cstdlib>
#include <sstream>

#include "tests/fake_gpus/gpus_file.hpp"

namespace emulation {
namespace {

using assay::fake::Json;

Gpu gpu_from(const Json& j) {
  Gpu gpu;
  gpu.uuid = j.at("uuid");
  gpu.name = j.value("name", "Emulated GPU");
  gpu.pci = j.value("pci", "00000000:01:00.0");
  gpu.memory_bytes = j.value("memory_bytes", gpu.memory_bytes);
  gpu.sm_count = j.value("sm_count", gpu.sm_count);
  gpu.fault = j.value("fault", "");
  if (const auto at = gpu.fault.find('@'); at != std::string::npos) {
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    gpu.fault = rank != nullptr && gpu.fault.substr(at + 1) == rank ? gpu.fault.substr(0, at) : "";
  }
  const std::string compute = j.value("compute", "9.0");
  gpu.major = std::atoi(compute.c_str());
  gpu.minor = std::atoi(compute.substr(compute.find('.') + 1).c_str());
  return gpu;
}

std::vector<Gpu> all_gpus() {
  std::vector<Gpu> gpus;
  for (const Json& j : assay::fake::GpusFile::get().gpus()) gpus.push_back(gpu_from(j));
  return gpus;
}

std::vector<Gpu> visible_gpus() {
  const auto all = all_gpus();
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return all;
  std::vector<Gpu> gpus;
  std::istringstream in(visible);
  for (std::string word; std::getline(in, word, ',');) {
    const Gpu* found = nullptr;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (word == std::to_string(i) || all[i].uuid.starts_with(word)) found = &all[i];
    if (found == nullptr) break;  // as CUDA does: what follows a wrong one is not visible
    gpus.push_back(*found);
  }
  return gpus;
}

}  // namespace

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> list = visible_gpus();
  return list;
}

}  // namespace emulation
