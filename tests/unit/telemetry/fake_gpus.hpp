// SPDX-License-Identifier: Apache-2.0
// The fake NVML with GPUs that a test may change.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/json.hpp"

namespace assay::testing {

class FakeGpus {
 public:
  explicit FakeGpus(const char* library = FAKE_NVML) {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay-gpus-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    std::ifstream(TWO_GPUS) >> json;
    setenv("ASSAY_NVML_LIBRARY", library, 1);
    setenv("ASSAY_FAKE_GPUS", (folder_ + "/gpus.json").c_str(), 1);
    write();
  }
  ~FakeGpus() {
    unsetenv("ASSAY_NVML_LIBRARY");
    unsetenv("ASSAY_FAKE_GPUS");
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  FakeGpus(const FakeGpus&) = delete;
  FakeGpus& operator=(const FakeGpus&) = delete;

  Json& gpu(std::size_t index) { return json["nodes"]["*"][index]; }
  /// Takes effect at the next call into the library.
  void write() {
    std::ofstream(folder_ + "/new.json") << json << std::string(++writes_, ' ');
    std::filesystem::rename(folder_ + "/new.json", folder_ + "/gpus.json");
  }

  Json json;

 private:
  std::string folder_;
  std::size_t writes_ = 0;
};

}  // namespace assay::testing
