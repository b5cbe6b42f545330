// SPDX-License-Identifier: Apache-2.0
// How full a file system is, and how much of it suites leave to others.
#pragma once

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>

namespace assay {

struct Space {
  std::uint64_t total = 0, available = 0;
};
inline Space space_of(const struct statvfs& info) noexcept {
  return {static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize,
          static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize};
}

/// Least bytes that stay free: a tenth of the file system, 5 GiB at least.
constexpr std::uint64_t reserve_bytes(std::uint64_t total) noexcept {
  return std::max(total / 10, std::uint64_t{5} << 30);
}

}  // namespace assay
