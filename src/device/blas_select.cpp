// SPDX-License-Identifier: Apache-2.0
// OpenBLAS 0.3.21 falls back to old kernels, in silence, on CPUs younger than itself. The choice is made when
// the library is loaded, so the only way to another one is to start again with OPENBLAS_CORETYPE set.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "device/blas.hpp"
#include "device/blas_policy.hpp"
#include "device/device.hpp"
#include "kernels/host/isa.hpp"

namespace assay {

using kernels::host::Isa;

namespace {

Isa isa_of_core(const std::string& core) {
  static const std::set<std::string> avx512 = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  static const std::set<std::string> avx2 = {"Haswell", "Zen"};
  return avx512.count(core) != 0 ? Isa::avx512 : avx2.count(core) != 0 ? Isa::avx2 : Isa::generic;
}

}  // namespace

std::string wanted_blas_core(const std::string& core, Isa cpu) {
  if (core.empty() || isa_of_core(core) >= cpu) return "";
  return cpu == Isa::avx512 ? "SkylakeX" : "Haswell";
}

void select_blas_core(char** argv) {
  const char* record = "ASSAY_BLAS_MEND";
#if defined(__x86_64__)
  const std::string core = openblas_core();
  const std::string wanted = wanted_blas_core(core, kernels::host::cpu_isa());
  if (wanted.empty()) return;
  if (const char* tried = std::getenv(record)) {
    const std::string text = tried;
    if (text.rfind("failed:", 0) != 0) setenv(record, ("failed:" + text).c_str(), 1);
    return;
  }
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;  // the user's choice
  setenv("OPENBLAS_CORETYPE", wanted.c_str(), 1);
  setenv(record, (core + "->" + wanted).c_str(), 1);
  // By its path, which is what the process is called from then on.
  std::error_code unreadable;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", unreadable).string();
  if (!unreadable) execv(program.c_str(), argv);
  execv("/proc/self/exe", argv);
  // Still here: no new program, so the old kernels it is, and on record.
  unsetenv("OPENBLAS_CORETYPE");
  setenv(record, ("failed:" + core + "->" + wanted).c_str(), 1);
#else
  (void)argv;
  (void)record;
#endif
}

}  // namespace assay
