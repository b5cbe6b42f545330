// SPDX-License-Identifier: Apache-2.0
// One self-contained HTML page of a run: everything its verdict rests on. The same input gives the same
// bytes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/html/grouping.hpp"
#include "report/html/seen.hpp"
#include "results/model.hpp"
#include "verdict/compare.hpp"
#include "verdict/contract.hpp"
#include "verdict/join.hpp"
#include "verdict/judgement.hpp"
#include "verdict/snapshot.hpp"

namespace assay::report {

/// The runs of a directory, judged together as `assay verdict DIR` does.
struct JointRuns {
  std::string name;
  std::vector<verdict::JoinedRun> runs;  ///< by start
  results::VerdictData verdict;
};

/// What a page is made from. `judgement` was judged by judge_all, `verdict` is what that returned.
struct PageInput {
  std::string file;    ///< its name, without folders
  std::string sha256;  ///< of the file; empty for a directory
  const results::Results& results;
  const verdict::Judgement& judgement;
  const results::VerdictData& verdict;
  std::vector<verdict::Snapshot> runs;  ///< earlier runs and this one, by start; fewer than two: no history
  std::optional<JointRuns> joint;       ///< of a directory: all its runs; this one is the newest
  std::optional<verdict::CompareResult> comparison;
  verdict::CompareOptions compare_options;
  const verdict::Snapshot* previous = nullptr;  ///< the run before; may be null
};

/// When something was seen of the part that a finding is about: a counter that moved during a case, an event,
/// a flag that was set.
struct TimeMark {
  double from = 0, to = 0;  ///< seconds since run start; equal for an event
  std::string kind, text;   ///< counter|event|flag
};

inline constexpr std::size_t marks_shown = 40;  ///< of a finding

/// Samples that a finding rests on, beside those of its peers.
struct Evidence {
  std::size_t finding = 0;
  const verdict::Series* series = nullptr;
  std::vector<double> peers;  ///< medians of those in the same group, thinned by rank
  std::size_t peer_count = 0;
  std::vector<double> own;    ///< samples of the part as screened, thinned by rank
  std::vector<double> again;  ///< of the retest cases
  std::vector<std::pair<double, double>> own_at, again_at;  ///< time and value of samples, thinned, by time
  std::vector<TimeMark> marks;                              ///< by time; empty without times
};

/// What a sweep draws: of the parts at each size the 5, 50 and 95 % quantile, and what stands beside them;
/// NaN: nothing is known.
struct SweepLines {
  std::vector<double> low, middle, high, bound, previous;
  std::string bound_kind;  ///< "contract" or "baseline"; empty without either
  std::vector<std::pair<std::string, std::vector<double>>> blamed;  ///< parts that a finding blames
};

/// From the first to the last sample of a case.
struct CaseSpan {
  double from = 0, to = 0;  ///< seconds since run start
  std::string suite, name;
};
/// Of the cases whose samples have times, by start.
std::vector<CaseSpan> spans_of(const results::Results& results);

/// Rows of the parts that are drawn of each quantity of telemetry: all, or of many those with the lowest, the
/// middle and the highest medians.
using DrawnParts = std::map<std::string, std::set<std::int32_t>>;
DrawnParts drawn_parts(const results::Results& results);

/// All that the sections show, made once.
struct Page {
  const PageInput& in;
  const Seen& seen;
  std::vector<verdict::ContractRow> contract;
  std::vector<verdict::Sensitivity> sensitivity;
  std::vector<Evidence> evidence;
  Matrices matrices;
  std::vector<Sweep> sweeps;
  std::vector<SweepLines> sweep_lines;  ///< [sweeps]
  std::vector<CaseSpan> spans;
  DrawnParts drawn;
  std::string links;  ///< which were exercised; empty where none was
};

std::string page_html(const PageInput& input);
/// One page over many runs, by start: history alone.
std::string trend_html(const std::vector<verdict::Snapshot>& runs, const std::string& name);
/// That no lasting change can be found in so few runs; empty where one can.
std::string few_runs_words(const std::vector<verdict::Snapshot>& runs);
/// The same in Markdown, short: for tickets and chat.
std::string page_markdown(const PageInput& input);
/// The data block of the page, JSON: results-schema/page.schema.json.
std::string page_data(const Page& page);
std::string trend_data(const std::vector<verdict::Snapshot>& runs);
/// Whether pictures can be moved in: this build has the script.
bool page_is_interactive() noexcept;

}  // namespace assay::report
