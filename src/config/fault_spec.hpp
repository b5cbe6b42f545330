// SPDX-License-Identifier: Apache-2.0
// Faults made on purpose: kind[:key=value{,key=value}], with lists 1+4 and ranges 2-5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// A set of whole numbers written as 1+4 or 2-5+9; empty = all.
class NumberSet {
 public:
  static NumberSet parse(const std::string& key,
                         const std::string& text);  ///< Error(usage) names key and text
  bool contains(std::int64_t n) const noexcept;
  bool everything() const noexcept { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

struct FaultSpec {
  FaultKind kind = FaultKind::slow;
  std::string text;  ///< as typed

  // Where: all that is given must match.
  NumberSet ranks, devices;        ///< device: index within its node
  std::vector<std::string> nodes;  ///< names (globs) or indices
  std::string suite = "*", case_glob = "*", metric = "*";

  // What; unset = the kind's default, or drawn from the seed.
  double factor = 0.5;   ///< rate multiplier in (0, 1): a region of t seconds takes t / factor
  double duty = 1.0;     ///< fraction of repetitions hit
  double ramp_s = 0;     ///< slow: seconds from `after` on in which the rate falls from 1 to `factor`
  double seconds = 1.0;  ///< stall
  std::optional<std::uint64_t> step, word, bit, seed;
  double after_s = 0;                                    ///< since run start
  std::string target;                                    ///< an injection point of some suite
  std::int64_t pair_source = -1, pair_destination = -1;  ///< slowlink, ranks
  int exit_code = 1;
  std::uint64_t after_bytes = 0;
  double clock_ppm = 0, clock_offset_s = 0;

  /// slowlink acts on the rank that receives, diskfull on the one that writes, all others where the selectors
  /// say.
  bool hits_rank(int rank, const std::string& node_name, int node_index, int device) const;
  bool hits_case(const std::string& suite_name, const std::string& case_name) const;
};

/// Throws Error(usage) with one line naming the part that is wrong.
FaultSpec parse_fault(const std::string& text);

}  // namespace assay
