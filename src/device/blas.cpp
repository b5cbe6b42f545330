// SPDX-License-Identifier: Apache-2.0
#include "device/blas.hpp"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

#include "base/affinity.hpp"
#include "device/device.hpp"

namespace assay {
namespace {

template <typename F>
F* find(const char* name) noexcept {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

/// The first two words: "OpenBLAS 0.3.21 NO_AFFINITY ..." -> "OpenBLAS 0.3.21".
std::string two_words(const std::string& text) {
  std::istringstream in(text);
  std::string first, second;
  in >> first >> second;
  return second.empty() ? first : first + " " + second;
}

std::string library_name() {
  if (auto* config = find<char*()>("openblas_get_config")) return two_words(config());
  if (auto* mkl = find<void(char*, int)>("MKL_Get_Version_String")) {
    char text[200] = {};
    mkl(text, sizeof text - 1);
    return text;
  }
  if (auto* blis = find<const char*()>("bli_info_get_version_str")) return std::string("BLIS ") + blis();
  return "CBLAS";
}

/// The file that GEMM comes from: several flavours of OpenBLAS share one name, and the one linked need not be
/// the one loaded. Naming a function here also makes every program that asks about the BLAS load it.
std::string library_file() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&cblas_sgemm), &info) != 0 && info.dli_fname != nullptr
             ? info.dli_fname
             : "";
}

std::string threading_name() {
  auto* parallel = find<int()>("openblas_get_parallel");
  if (parallel == nullptr) return "unknown";
  switch (parallel()) {
    case 0: return "sequential";
    case 1: return "pthreads";
    case 2: return "openmp";
    default: return "unknown";
  }
}

}  // namespace

std::string openblas_core() {
  auto* core = find<char*()>("openblas_get_corename");
  return core == nullptr ? "" : core();
}

int set_blas_threads(int threads) {
  if (auto* openblas = find<void(int)>("openblas_set_num_threads")) {
    openblas(threads);
    auto* used = find<int()>("openblas_get_num_threads");
    return used == nullptr ? threads : used();
  }
  if (auto* mkl = find<void(int)>("MKL_Set_Num_Threads")) {
    mkl(threads);
    auto* used = find<int()>("MKL_Get_Max_Threads");
    return used == nullptr ? threads : used();
  }
  if (auto* blis = find<void(long)>("bli_thread_set_num_threads")) blis(threads);
  return threads;
}

void bind_blas_threads(const std::vector<int>& cpus) {
  auto* bind = find<int(int, std::size_t, cpu_set_t*)>("openblas_setaffinity");
  if (bind == nullptr) return;
  // Its thread 0 is the first of its own workers; the caller, bound already, is none of them.
  for (std::size_t i = 1; i < cpus.size(); ++i) {
    CpuMask mask({cpus[i]});
    bind(static_cast<int>(i) - 1, mask.bytes(), mask.get());
  }
}

std::map<std::string, std::string> blas_info() {
  const char* mend = std::getenv("ASSAY_BLAS_MEND");
  return {{"library", library_name()},
          {"file", library_file()},
          {"core", openblas_core()},
          {"parallel", threading_name()},
          {"mend", mend == nullptr ? "" : mend}};
}

}  // namespace assay
