// SPDX-License-Identifier: Apache-2.0
// Faults made on purpose in a run; how they are written: fault_grammar.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/fault_grammar.hpp"

namespace assay {

enum class FaultKind {
  slow,
  stall,
  bitflip,
  nan,
  drop,
  slowlink,
  hang,
  crash,
  exit,
  throwing,
  diskfull,
  nomem,
  clock
};
const char* to_string(FaultKind kind) noexcept;

/// What is not given is the default of the kind or drawn from the seed. `factor`: a region of t seconds takes
/// t / factor. `target` is an injection point of some suite, `pair` is of slowlink.
struct FaultSpec : CommonFault {
  FaultKind kind = FaultKind::slow;
  NumberSet ranks;
  std::string server;    ///< slow: a glob; only transfers with servers of storage that match
  double ramp_s = 0;     ///< slow: seconds from `after` on in which the rate falls from 1 to `factor`
  double seconds = 1.0;  ///< stall
  std::optional<std::uint64_t> step, word, bit, seed;
  double after_s = 0;  ///< since run start
  int exit_code = 1;
  std::uint64_t after_bytes = 0;
  double clock_ppm = 0, clock_offset_s = 0;

  /// slowlink acts on the rank that receives, diskfull on the one that writes, all others where the selectors
  /// say.
  bool hits_rank(int rank, const std::string& node_name, int node_index, int device) const;
};

/// Throws Error(usage) with one line naming the part that is wrong.
FaultSpec parse_fault(const std::string& text);

}  // namespace assay
