// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::verdict {

struct Baseline;
struct History;
struct Snapshot;

inline constexpr const char* coverage_name = "coverage";  ///< of --require: every core and GPU has a rank

/// References and switches of a judgement, from the command line or from /config.
struct Options {
  bool strict = false;                      ///< WARN exits with 1
  std::string limits_text, limits_name;     ///< TOML text of --limits and its file name for messages
  std::vector<std::string> require;         ///< globs of --require: what must not be missing
  std::string baseline_name, history_name;  ///< as given; what they name is one of these, or missing
  std::shared_ptr<const Baseline> baseline;
  std::shared_ptr<const std::vector<Snapshot>>
      earlier;                             ///< runs of --history, to be bound to the run that is judged
  std::shared_ptr<const History> history;  ///< bound before: as stored in /verdict/inputs
};

/// Options as the run had them, from /config; a command line may override.
Options options_from(const results::Results& results);

/// Judges a results file. Pure: the same input gives the same verdict, in the run and afterwards. Throws
/// Error(usage) only for a bad limits text.
results::VerdictData judge(const results::Results& results, const Options& options);

/// Checks a limits text (TOML) before anything runs: unknown metric, wrong or missing unit, absent bound.
/// Throws Error(usage) naming file, line and key.
void check_limits(const std::string& text, const std::string& name);

/// The same against the metrics of this build (`Suite::metrics`): also an unknown suite or metric, and a unit
/// that is not the metric's, so that wrong limits are found before the run.
using SuiteMetrics = std::map<std::string, std::vector<results::MetricSpec>>;  ///< by suite
void check_limits(const std::string& text, const std::string& name, const SuiteMetrics& known);

}  // namespace assay::verdict
