// SPDX-License-Identifier: Apache-2.0
// The GPUs that the file named by ASSAY_FAKE_GPUS describes for this host. The emulation of CUDA and the fake
// NVML read them here.
#pragma once

#include <sys/stat.h>
#include <unistd.h>
#include <ctime>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace assay::fake {

using Json = nlohmann::json;

/// Seconds of a clock that all processes of this machine share and that never goes back.
inline double monotonic_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class GpusFile {
 public:
  static GpusFile& get() {
    static GpusFile file;
    return file;
  }

  /// The file as it is now: it is read again when its time or size has changed.
  Json file() {
    const std::scoped_lock lock(mutex_);
    const char* name = std::getenv("ASSAY_FAKE_GPUS");
    struct stat now {};
    if (name == nullptr || stat(name, &now) != 0) return last_;
    const bool same = now.st_size == seen_.st_size && now.st_mtim.tv_sec == seen_.st_mtim.tv_sec &&
                      now.st_mtim.tv_nsec == seen_.st_mtim.tv_nsec && now.st_ino == seen_.st_ino;
    if (same) return last_;
    std::ifstream text(name);
    Json fresh = Json::parse(text, nullptr, false);
    if (fresh.is_discarded()) return last_;  // it is being written
    seen_ = now;
    last_ = std::move(fresh);
    return last_;
  }

  /// The GPUs of this host: those under its name without the domain, else those under "*".
  Json gpus() {
    const Json all = file();
    if (!all.is_object() || !all.contains("nodes")) return Json::array();
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    std::string name = host;
    name = name.substr(0, name.find('.'));
    const Json& nodes = all["nodes"];
    for (const std::string& key : {name, std::string("*")})
      if (nodes.contains(key)) return nodes[key];
    return Json::array();
  }

 private:
  std::mutex mutex_;
  struct stat seen_ {};
  Json last_;
};

/// A value of a GPU by its path, {"clocks", "sm"}; null where the file says nothing.
inline Json at(const Json& gpu, const std::vector<std::string>& path) {
  const Json* value = &gpu;
  for (const std::string& key : path) {
    if (!value->is_object() || !value->contains(key)) return {};
    value = &(*value)[key];
  }
  return *value;
}

/// Seconds that this process has kept processors busy.
inline double busy_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The number that a value stands for now: itself, or {"start": a, "rate": b, "busy": c}, which is a + b
/// times the seconds of monotonic_s() + c times those of busy_s().
inline double number(const Json& value) {
  if (value.is_object())
    return value.value("start", 0.0) + value.value("rate", 0.0) * monotonic_s() +
           value.value("busy", 0.0) * busy_s();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  return value.get<double>();
}

}  // namespace assay::fake
