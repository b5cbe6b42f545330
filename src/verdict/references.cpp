// SPDX-License-Identifier: Apache-2.0
#include "verdict/references.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "verdict/baseline.hpp"
#include "verdict/history.hpp"
#include "verdict/history_index.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

std::vector<Snapshot> read(const std::string& option, const std::string& name, IndexUse use) {
  try {
    return read_run_list(name, use);
  } catch (const Error& e) {
    throw Error(e.kind(), "--" + option + ": " + e.what());
  }
}

/// What several metrics of a suite say of one part, or of the cluster, against one reference is one story:
/// the finding that may be acted on first, else the largest against what its class may be short of, names the
/// others. From the finding number `from` on.
void join_stories(Judgement& j, std::size_t from) {
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::vector<std::size_t>> stories;
  for (std::size_t i = from; i < j.found.size(); ++i) {
    const auto& f = j.found[i].finding;
    if (f.metric.empty() || f.severity == "INFO") continue;
    stories[{f.reference_kind, f.level, f.id.empty() ? f.name : f.id, f.suite}].push_back(i);
  }
  std::set<std::size_t> told;
  for (auto& [key, of] : stories) {
    if (of.size() < 2) continue;
    std::stable_sort(of.begin(), of.end(), [&](std::size_t a, std::size_t b) {
      const auto &x = j.found[a].finding, &y = j.found[b].finding;
      // What shows for longer may be acted on sooner.
      return std::tuple(x.severity != "FAIL", x.since, -x.deficit.value_or(0)) <
             std::tuple(y.severity != "FAIL", y.since, -y.deficit.value_or(0));
    });
    auto& lead = j.found[of.front()];
    lead.finding.text += ", and so in " + std::to_string(of.size() - 1) + " other metric" +
                         (of.size() > 2 ? "s" : "") + " of " + lead.finding.suite;
    std::set<std::string> members(lead.finding.members.begin(), lead.finding.members.end());
    for (std::size_t k = 1; k < of.size(); ++k) {
      const auto& other = j.found[of[k]];
      if (k <= 3)
        lead.finding.text += (k == 1 ? ": " : ", ") +
                             other.finding.metric.substr(lead.finding.suite.size() + 1) + " " +
                             percent(other.finding.deficit.value_or(0));
      lead.rows.insert(lead.rows.end(), other.rows.begin(), other.rows.end());
      for (const auto& member : other.finding.members)
        if (members.insert(member).second) lead.finding.members.push_back(member);
      told.insert(of[k]);
    }
  }
  std::vector<Found> kept;
  for (std::size_t i = 0; i < j.found.size(); ++i)
    if (!told.contains(i)) kept.push_back(std::move(j.found[i]));
  j.found = std::move(kept);
}

}  // namespace

References References::load(const std::string& baseline, const std::string& history) {
  References out;
  out.baseline_name = baseline;
  out.history_name = history;
  if (!baseline.empty())
    out.baseline =
        std::make_shared<const Baseline>(baseline_of(read("baseline", baseline, IndexUse::read), baseline));
  if (!history.empty())
    out.earlier = std::make_shared<const std::vector<Snapshot>>(read("history", history, IndexUse::update));
  return out;
}

void References::put(Options& options) const {
  if (baseline) {
    options.baseline = baseline;
    options.baseline_name = baseline_name;
  }
  if (earlier) {
    options.earlier = earlier;
    options.history = nullptr;
    options.history_name = history_name;
  }
}

void restore_references(Options& options, const Json& inputs) {
  const auto stored = [&](const char* key) {
    return inputs.is_object() && inputs.contains(key) && inputs[key].is_object();
  };
  if (stored("baseline")) {
    options.baseline = std::make_shared<const Baseline>(baseline_from(inputs["baseline"]));
    options.baseline_name = options.baseline->name;
  }
  if (stored("history")) {
    options.history = std::make_shared<const History>(history_from(inputs["history"]));
    options.history_name = options.history->name;
  }
}

void store_references(Json& inputs, const Options& options, const History* history) {
  if (options.baseline) inputs["baseline"] = baseline_json(*options.baseline);
  if (history != nullptr) inputs["history"] = history_json(*history);
}

std::shared_ptr<const History> judge_references(Judgement& j) {
  const Options& o = j.options;
  if (o.baseline_name.empty() && o.history_name.empty() && !o.baseline && !o.earlier && !o.history)
    return nullptr;
  const Snapshot now = snapshot_of(j, "");
  if (o.baseline) {
    for (const auto& run : o.baseline->runs) {
      if (!run.run_id.empty() && run.run_id == now.source.run_id)
        throw_usage("--baseline: '" + run.file + "' is the run that is judged");
    }
  }
  const std::size_t before = j.found.size();
  judge_baseline(j, now);
  auto history = o.history;
  if (o.earlier) history = std::make_shared<const History>(history_of(*o.earlier, now, o.history_name));
  if (history) {
    judge_history(j, now, *history);
  } else if (!o.history_name.empty()) {
    j.gap("history " + o.history_name +
          ": its values are not stored in this file: judge it again with --history");
  }
  join_stories(j, before);
  return history;
}

}  // namespace assay::verdict
