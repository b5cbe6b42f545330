// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/isa.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace assay::kernels::host {

const char* to_string(Isa isa) noexcept {
  switch (isa) {
    case Isa::avx512: return "avx512";
    case Isa::avx2: return "avx2";
    case Isa::generic: break;
  }
#if defined(__aarch64__)
  return "neon";
#else
  return "generic";
#endif
}

Isa cpu_isa() noexcept {
#if defined(__x86_64__)
  // libgcc's answer includes the operating system's consent to the wider registers (XCR0).
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::generic;
}

namespace {
Isa choose() noexcept {
  const Isa best = cpu_isa();
  const char* wish = std::getenv("ASSAY_ISA");
  if (wish == nullptr) return best;
  if (std::strcmp(wish, "generic") == 0) return Isa::generic;
  if (std::strcmp(wish, "avx2") == 0) return std::min(best, Isa::avx2);
  return best;
}
}  // namespace

Isa host_isa() noexcept {
  static const Isa isa = choose();
  return isa;
}

}  // namespace assay::kernels::host
