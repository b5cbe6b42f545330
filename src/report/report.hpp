// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "results/model.hpp"

namespace assay::report {

struct Style {
  int width = 80;
  bool color = false;
};

/// The summary: per suite a line in plain words for each case worth one (median, spread, the worst entity
/// where it is far behind), then findings, verdict and file. `inspect_text` has everything.
std::string summary(const results::Results& results, const results::VerdictData& verdict,
                    const std::string& file, const Style& style);
/// "ran 13.2 s of 15 s": of a whole run, and the time of its level.
std::string time_line(double ran_s, double budget_s);
/// Findings and verdict only: `assay verdict`.
std::string verdict_text(const results::VerdictData& verdict, const Style& style);
/// Contents of a results file as text: `assay inspect`.
std::string inspect_text(const results::Results& results, const std::string& file, const Style& style);
/// Nodes, devices, numa domains and NICs: a row with the state, then rows with medians, as many metrics
/// beside each other as fit: `assay export --table`.
std::string table_text(const results::Results& results, const results::VerdictData& verdict,
                       const Style& style);

std::string verdict_json(const results::Results& results, const results::VerdictData& verdict);   ///< --json
std::string verdict_junit(const results::Results& results, const results::VerdictData& verdict);  ///< --junit
std::string nodes_text(const results::Results& results, const results::VerdictData& verdict);     ///< --nodes
/// --prometheus: the text format of Prometheus, all gauges. Labels name parts of the machine and of the plan,
/// never a run.
std::string verdict_prometheus(const results::Results& results, const results::VerdictData& verdict);

/// --coverage: CSV of links between nodes, `level,from,to,bytes,cases`: pairs of nodes and NICs that were
/// measured, with a topology the cable of every NIC and all pairs of switches, with 0 where nothing went and
/// empty bytes and cases where no record tells.
std::string coverage_csv(const results::Results& results, const results::VerdictData& verdict);
/// The same in a line; empty where no nodes talked to each other.
std::string coverage_line(const results::Results& results);

/// What is written for other programs, each by an option of `run` and `verdict`.
struct MachineOutput {
  const char* option;
  std::string (*content)(const results::Results&, const results::VerdictData&);
};
std::span<const MachineOutput> machine_outputs() noexcept;

}  // namespace assay::report
