// SPDX-License-Identifier: Apache-2.0
#include "verdict/references.hpp"

#include "base/error.hpp"
#include "verdict/baseline.hpp"
#include "verdict/history.hpp"
#include "verdict/history_index.hpp"
#include "verdict/judgement.hpp"
#include "verdict/stories.hpp"

namespace assay::verdict {
namespace {

std::vector<Snapshot> read(const std::string& option, const std::string& name, IndexUse use) {
  try {
    auto runs = read_run_list(name, use);
    leave_out_copies(runs);  // a run that is given twice would count as another one, which agrees with it
    return runs;
  } catch (const Error& e) {
    throw Error(e.kind(), "--" + option + ": " + e.what());
  }
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
