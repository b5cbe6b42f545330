// SPDX-License-Identifier: Apache-2.0
#include "verdict/verdict.hpp"

#include "verdict/collectives.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network.hpp"
#include "verdict/references.hpp"
#include "verdict/stories.hpp"

namespace assay::verdict {
namespace {

std::string text_of(const Json* value) {
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

bool flag_of(const Json* value) {
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  if (value->is_number()) return value->get<double>() != 0;
  return text_of(value) == "true" || text_of(value) == "1";
}

std::vector<std::string> list_of(const Json* value) {
  std::vector<std::string> list;
  if (value == nullptr) return list;
  if (value->is_string()) {
    std::string rest = value->get<std::string>();
    for (std::size_t comma = 0; !rest.empty();
         rest = comma == std::string::npos ? "" : rest.substr(comma + 1)) {
      comma = rest.find(',');
      if (comma != 0) list.push_back(rest.substr(0, comma));
    }
  }
  if (value->is_array()) {
    for (const auto& item : *value) {
      if (item.is_string()) list.push_back(item.get<std::string>());
    }
  }
  return list;
}

}  // namespace

const Json* configured(const Json& config, const char* key) {
  for (const Json* place :
       {&config, config.is_object() && config.contains("options") ? &config["options"] : nullptr}) {
    if (place == nullptr || !place->is_object()) continue;
    const auto it = place->find(key);
    if (it != place->end() && !it->is_null()) return &*it;
  }
  return nullptr;
}

Options options_from(const results::Results& results) {
  const Json empty = Json::object();
  const Json& stored = results.verdict ? results.verdict->inputs : empty;
  auto pick = [&](const char* key) {
    const Json* value = configured(results.config, key);
    return value != nullptr ? value : configured(stored, key);
  };
  Options options;
  options.strict = flag_of(pick("strict"));
  options.limits_text = text_of(pick("limits_text"));
  options.limits_name = options.limits_text.empty() ? "" : text_of(pick("limits"));
  options.require = list_of(pick("require"));
  options.baseline_name = text_of(configured(results.config, "baseline"));
  options.history_name = text_of(configured(results.config, "history"));
  restore_references(options, stored);
  return options;
}

results::VerdictData judge(const results::Results& results, const Options& options) {
  Judgement j(results, options);
  return judge_all(j);
}

results::VerdictData judge_all(Judgement& j) {
  judge_accounting(j);
  collect_series(j);
  find_slow_rails(j);
  judge_impossible(j);
  judge_selftest(j);
  judge_miscompares(j);
  judge_digests(j);
  judge_events(j);
  judge_counters(j);
  judge_paths(j);
  judge_required(j);
  judge_inventory(j);
  judge_links(j);
  // The retest asks for each metric of these, so they are joined here.
  const auto joined = [&j](void (*judge_bounds)(Judgement&)) {
    const std::size_t before = j.found.size();
    judge_bounds(j);
    join_stories(j, before);
  };
  joined(judge_limits);
  const auto history = judge_references(j);
  joined(judge_physical);
  judge_small_populations(j);
  judge_network(j);
  judge_slow_rails(j);
  judge_across_switches(j);
  judge_unlike_links(j);
  judge_rails(j);
  judge_collectives(j);
  judge_peers(j);
  judge_ranks_in_step(j);
  judge_bisection(j);
  judge_collective_bounds(j);
  judge_impossible_links(j);
  judge_patterns(j);
  judge_dips(j);
  judge_drift(j);
  judge_noise(j);
  judge_imported(j);
  attribute_core_share(j);
  name_storage_places(j);
  auto verdict = conclude(j);
  store_references(verdict.inputs, j.options, history.get());
  return verdict;
}

}  // namespace assay::verdict
