// SPDX-License-Identifier: Apache-2.0
// What a run is held against besides limits, physics and its own peers: --baseline and --history.
#pragma once

#include <memory>
#include <string>

#include "base/json.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {

struct Judgement;

/// Reads what --baseline and --history name (empty: neither) into a value that any number of runs can be
/// judged with. Throws Error(data) or Error(usage) in one line that names the option.
struct References {
  std::string baseline_name, history_name;
  std::shared_ptr<const Baseline> baseline;
  std::shared_ptr<const std::vector<Snapshot>> earlier;

  static References load(const std::string& baseline, const std::string& history);
  /// What was given takes the place of what `options` had.
  void put(Options& options) const;
};

/// The references that a verdict was made with, from its /verdict/inputs.
void restore_references(Options& options, const Json& inputs);
/// Writes them there. `history` is what `judge_references` returned.
void store_references(Json& inputs, const Options& options, const History* history);

/// Judges by baseline and history; returns the history as bound to this run, null without one.
std::shared_ptr<const History> judge_references(Judgement& j);

}  // namespace assay::verdict
