// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "config/fault_spec.hpp"
#include "config/option.hpp"

namespace assay {

/// Of a results file without --out: assay-<UTC time>.h5.
std::string default_file_name();

enum class Level { smoke, quick, standard, extended, soak };
const char* to_string(Level level) noexcept;
/// Wall time of a level from the end of initialisation, in seconds: 15, 120, 900, 7200; soak takes
/// --duration.
double level_budget_s(Level level, double duration_s) noexcept;

/// The validated configuration of `run` and `plan`: typed fields for what the core needs, `options` for all
/// of it.
struct Config {
  std::vector<std::string> suites;  ///< in canonical order
  std::string cases_glob = "*";
  Level level = Level::quick;
  double duration_s = 0;    ///< soak only
  double segment_s = 1800;  ///< soak only: the longest that one file may cover
  std::string device = "auto";
  bool share_gpus = false;
  double telemetry_hz = 0;       ///< 0 = none
  bool telemetry_given = false;  ///< else a plan for many parts keeps fewer
  std::string out;               ///< results file, never empty
  std::string only,
      exclude;         ///< nodes that take part, or do not: host lists as typed; `exclude` may name a file
  std::string resume;  ///< what to go on with: a partial directory, or a results file; empty = a new run
  /// Memory per rank: of the resumed run, or what the ranks can have in time; 0 = by the topology alone.
  std::uint64_t agreed_memory_bytes = 0;
  bool force = false;
  std::uint64_t seed = 0;  ///< resolved on rank 0 when not given
  bool seed_given = false;
  std::string limits_file,
      limits_text;  ///< each rank reads the file; the text is hashed into the plan
  std::string topology_file,
      topology_text;  ///< read and hashed likewise; empty = nothing is known of switches
  std::int64_t expect_nodes = 0, expect_ranks = 0, expect_devices = 0;  ///< 0 = not checked
  std::int64_t threads = 0;                                             ///< per rank; 0 = share of cores
  std::vector<std::string> require;
  std::uint64_t max_file_bytes = 0;  ///< 0: by the number of nodes, see most_file_bytes()
  std::vector<FaultSpec> faults;     ///< made on purpose (--inject); the verdict never sees them
  bool strict = false, quiet = false;
  std::string color = "auto", progress = "auto";
  OptionValues options;      ///< every option, suites' included
  std::string command_line;  ///< as typed

  /// A soak is a chain of segments, each with a file and a seed of its own; other levels have one.
  int segments() const noexcept {
    return level == Level::soak ? std::max(1, static_cast<int>(std::ceil(duration_s / segment_s - 1e-9))) : 1;
  }
  /// Whether what is resumed is taken over into a new file, since its file is closed or the nodes are others.
  bool carries_over() const noexcept {
    return !resume.empty() && (!resume.ends_with(".partial") || !only.empty() || !exclude.empty());
  }
  /// Of one segment.
  double budget_s() const noexcept { return level_budget_s(level, duration_s) / segments(); }
  /// The resolved configuration, for /config, the plan hash and `assay plan --json`. Without options of
  /// presentation when `for_hash`; else their names are listed under "presentation".
  Json to_json(bool for_hash) const;
};

/// The options of `run` and `plan` that do not belong to a suite.
const std::vector<OptionSpec>& run_options();

/// Checks combinations and fills the typed fields. `suite_names` is the list of suites of this build, in
/// order, without hidden ones; hidden suites may be named. Throws Error(usage).
Config make_config(OptionValues values, const std::vector<std::string>& suite_names,
                   const std::vector<std::string>& hidden_suites);

/// Option values from TOML text that was read from `file`: top-level keys are option names, [gemm] dtypes is
/// gemm.dtypes. An unknown key or a wrong type throws Error(usage) "FILE:LINE: KEY: what". Result: option
/// name -> texts as they would be typed.
std::map<std::string, std::vector<std::string>> parse_toml_options(const std::string& text,
                                                                   const std::string& file,
                                                                   const std::vector<OptionSpec>& specs);

}  // namespace assay
