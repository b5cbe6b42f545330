// SPDX-License-Identifier: Apache-2.0
// What a sweep found wrong, and what kind of defect it looks like.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/pattern.hpp"
#include "measure/fault_class.hpp"

namespace assay::memory {

/// Of all chunks of one sweep.
struct SweepErrors {
  const kernels::Sweep& sweep;
  std::size_t number;  ///< of the sweep in its pattern
  std::vector<kernels::ErrorRecord> records;
  std::array<std::uint64_t, 128> bits;  ///< as ErrorLog::bits
  std::uint64_t count;

  /// Adds what a part of the region that begins at word `first` held.
  void add(const kernels::ErrorLog& log, std::size_t first);
};

/// One line: "row: 12 wrong words of march-c sweep 3, bytes 4096 to 4184, bit 17 0>1 12; all seen by SM 5;
/// first: byte 4096, SM 5 warp 3 lane 17, and again when read again".
std::string fault_text(const std::string& pattern, const SweepErrors& errors);

}  // namespace assay::memory
