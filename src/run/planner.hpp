// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "suite/suite.hpp"

namespace assay {

/// How many numbers the rows of a suite's operation have in the results file, beside their times.
struct Columns {
  int per_sample = 1, per_row = 0;
};

/// What will be run, in order; a pure function of configuration, topology and the agreed memory, equal on all
/// ranks.
struct Plan {
  std::vector<Case> cases;  ///< by stage; shuffled by the seed inside a stage; not-applicable ones last
  std::uint64_t memory_per_rank_bytes = 0;
  std::uint64_t arena_bytes = 0;  ///< the largest need of any case
  double budget_s = 0;
  int passes = 1;
  std::string hash;  ///< over version, configuration, seed, memory and rank -> (node shape, device)

  double required_s() const noexcept;
  /// A line where the required cases alone take longer than the budget; else empty.
  std::string over_budget() const;
  double expected_s() const noexcept;  ///< all planned cases
  /// Cases that are left out because no device multiplies matrices (Topology::no_products).
  std::int64_t without_products(const Topology& topology) const noexcept;
  std::uint64_t telemetry_bytes = 0, entity_bytes = 0;  ///< of the results file
  double counter_bytes = 0;                             ///< likewise, of each case
  std::size_t telemetry_every = 1;                      ///< of so many readings of telemetry one is kept
  std::map<std::string, Columns> columns;               ///< by "suite operation", as the suites declare them
  /// About how large the results file will be: all required cases, and of the others the share that the
  /// budget leaves time for.
  std::uint64_t file_bytes() const { return bytes_of(true); }
  /// About how large the files of ended cases will be that it is merged from: they are not packed.
  std::uint64_t case_files_bytes() const { return bytes_of(false); }
  /// What a case takes before it is merged and packed.
  double case_file_bytes(const Case& c) const;

 private:
  std::uint64_t bytes_of(bool packed) const;
  Columns columns_of(const Case& c) const;
};

/// `--max-file`, or where it is not given 2.5 MiB for each node, at least 4 GiB: `standard` on 12,500 nodes
/// of 8 ranks is to fit 30 GiB.
std::uint64_t most_file_bytes(const Config& config, std::size_t nodes) noexcept;

/// What a rank's arena may hold: the minimum over nodes of min(available, cgroup limit - use) x fraction,
/// leaving max(4 GiB, 5 %) free where there is that much, rounded down to 256 MiB (16 MiB below 1 GiB),
/// divided among the ranks of the fullest node. Of GPUs: fraction of the least that was free on one, shared
/// by the ranks that measure with it.
std::uint64_t memory_per_rank(const Topology& topology, double fraction);

/// `--memory.fraction`, or its default for the level.
double memory_fraction(const Config& config);

/// Throws Error(usage) when --cases matches nothing or an option of a suite is wrong.
Plan make_plan(const Config& config, const Topology& topology,
               const std::vector<std::unique_ptr<Suite>>& suites);

/// The plan as `assay plan` prints it.
std::string plan_text(const Plan& plan, const Config& config, const Topology& topology);
/// The measured pairs: "CASE ROUND PART PART" a line, rounds from 1.
std::string pairs_text(const Plan& plan, const Config& config, const Topology& topology,
                       const std::vector<std::unique_ptr<Suite>>& suites);

/// What planning took on this rank, which is what each rank of a run pays: from `begin_s` of process_cpu_s
/// on.
std::string planning_text(double begin_s);

}  // namespace assay
