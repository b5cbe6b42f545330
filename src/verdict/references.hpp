// SPDX-License-Identifier: Apache-2.0
// References of a run besides limits, floors and peers: --baseline and --history.
#pragma once

#include <memory>
#include <string>

#include "base/json.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {

struct Judgement;

/// Reads --baseline and --history (empty: none) into a value that can judge any number of runs. Throws
/// Error(data) or Error(usage) in one line that names the option.
struct References {
  std::string baseline_name, history_name;
  std::shared_ptr<const Baseline> baseline;
  std::shared_ptr<const std::vector<Snapshot>> earlier;

  static References load(const std::string& baseline, const std::string& history);
  /// Replaces the references in `options` by the given ones.
  void put(Options& options) const;
};

/// The references that a verdict was made with, from its /verdict/inputs.
void restore_references(Options& options, const Json& inputs);
/// Writes them there. `history` is what `judge_references` returned.
void store_references(Json& inputs, const Options& options, const History* history);

/// Judges by baseline and history; returns the history as bound to this run, null without one.
std::shared_ptr<const History> judge_references(Judgement& j);

}  // namespace assay::verdict
