// SPDX-License-Identifier: Apache-2.0
#include "results/resume.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/error.hpp"
#include "results/carry.hpp"
#include "results/entity_tree.hpp"
#include "results/iso_time.hpp"
#include "results/json_io.hpp"
#include "results/partial.hpp"
#include "results/reader.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

/// Seconds since `iso` (ISO 8601 UTC), 0 when it is none or lies ahead.
double seconds_since(const std::string& iso) {
  const auto then = unix_seconds(iso);
  return then ? std::max(0.0, static_cast<double>(std::time(nullptr) - *then)) : 0;
}

std::uint64_t memory_of(const Json& config) {
  const auto at = config.is_object() ? config.find("memory_per_rank_bytes") : config.end();
  return config.is_object() && at != config.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

std::string differ(const std::string& what, const std::string& then, const std::string& now) {
  return then == now ? "" : "the " + what + " is " + now + ", and was " + then;
}

std::string with_id(const Entity& e) { return e.kind + " " + e.name + " (" + e.id + ")"; }

std::string nodes_problem(const std::vector<Entity>& then, const std::vector<Entity>& now) {
  const auto nodes = [](const std::vector<Entity>& rows) {
    std::vector<const Entity*> out;
    for (const std::int32_t row : nodes_with_ranks(rows)) out.push_back(&rows[static_cast<std::size_t>(row)]);
    return out;
  };
  const auto before = nodes(then), after = nodes(now);
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (before[i]->id != after[i]->id)
      return "node " + std::to_string(i) + " is " + with_id(*after[i]) + ", and was " + with_id(*before[i]);
  }
  return differ("number of nodes", std::to_string(before.size()), std::to_string(after.size()));
}

std::string ranks_problem(const std::vector<Entity>& then, const std::vector<Entity>& now) {
  const auto places = [](const std::vector<Entity>& rows) {
    std::map<std::int32_t, const Entity*> out;
    for (const Entity& e : rows) {
      if (e.rank >= 0) out.emplace(e.rank, &e);
    }
    return out;
  };
  const auto before = places(then), after = places(now);
  for (const auto& [rank, place] : before) {
    const auto at = after.find(rank);
    if (at != after.end() && at->second->id != place->id)
      return "rank " + std::to_string(rank) + " runs on " + at->second->name + ", and ran on " + place->name;
  }
  return differ("number of ranks", std::to_string(before.size()), std::to_string(after.size()));
}

/// The rows must be the same, or what is stored would refer to other parts of the machine.
std::string entities_problem(const std::vector<Entity>& then, const std::vector<Entity>& now) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string here = "entity " + std::to_string(i) + " is " + with_id(now[i]);
    if (i >= then.size()) return here + ", which was not there";
    if (then[i].kind != now[i].kind || then[i].id != now[i].id || then[i].parent != now[i].parent)
      return here + ", and was " + with_id(then[i]);
  }
  return "";
}

/// The value of an option as it is typed.
std::string typed(const Json& config, const std::string& key) {
  const Json value = config.value(key, Json());
  if (value.is_boolean()) return value == Json(true) ? "given" : "not given";
  if (value.is_null() || value.empty() || value == Json("")) return "not given";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return dump(value);
  std::string list;
  for (const Json& item : value)
    list += (list.empty() ? "" : ",") + (item.is_string() ? item.get<std::string>() : dump(item));
  return list;
}

/// How one option differs. Of a file that an option names, its text is stored.
std::string option_problem(const Json& then, const Json& now, const std::string& key) {
  static const std::string absent = "not given";
  std::string before = typed(then, key), after = typed(now, key), name = "--" + key;
  if (then.value(key, Json()) == now.value(key, Json()) || (before == absent && after == absent)) return "";
  if (key.ends_with("_text")) {
    name = "--" + key.substr(0, key.size() - std::strlen("_text"));
    if (before != absent && after != absent) return "the content of the file of " + name + " has changed";
    (before == absent ? after : before) = "given";
  }
  return name + " is " + after + ", and was " + before;
}

/// The first key that differs, to explain a plan hash that does. What does not enter the hash is of no
/// interest.
std::string config_problem(const Json& then, const Json& now, bool fewer_nodes = false) {
  static const std::set<std::string> of_the_launch{"only",         "exclude", "expect-nodes",
                                                   "expect-ranks", "inject",  "memory_per_rank_bytes"};
  if (!then.is_object() || !now.is_object()) return "";
  std::set<std::string> keys, harmless{"presentation"};
  for (const Json* json : {&then, &now}) {
    for (const Json& name : json->value("presentation", Json::array()))
      if (name.is_string()) harmless.insert(name.get<std::string>());
    for (const auto& item : json->items()) keys.insert(item.key());
  }
  for (const std::string& key : keys) {
    if (harmless.contains(key) || (fewer_nodes && of_the_launch.contains(key))) continue;
    if (std::string problem = option_problem(then, now, key); !problem.empty()) return problem;
  }
  return "";
}

/// A node or device of `now` that did not take part in the earlier run.
std::string new_parts_problem(const std::vector<Entity>& then, const std::vector<Entity>& now) {
  std::set<std::pair<std::string, std::string>> known;
  for (const Entity& e : then) known.emplace(e.kind, e.id);
  for (const Entity& e : now) {
    if ((e.kind == "node" || e.kind == "device") && !known.contains({e.kind, e.id}))
      return with_id(e) + " did not take part";
  }
  return "";
}

std::string plan_problem(const std::vector<PlanRow>& then, const std::vector<PlanRow>& now) {
  for (std::size_t i = 0; i < std::min(then.size(), now.size()); ++i) {
    const std::string before = then[i].suite + "/" + then[i].name, after = now[i].suite + "/" + now[i].name;
    if (before != after) return "planned case " + std::to_string(i) + " is " + after + ", and was " + before;
  }
  return differ("number of planned cases", std::to_string(then.size()), std::to_string(now.size()));
}

}  // namespace

ResumeInfo read_resume(const Path& given) {
  const Path path = given.has_filename() ? given : given.parent_path();
  const bool closed = path.extension() == ".h5";
  if ((path.extension() != ".partial" && !closed) || path.stem().empty())
    throw_usage("--resume: '" + given.string() + "' is neither NAME.h5.partial nor NAME.h5");
  if (was_taking_over(path))
    throw_usage("--resume: " + path.string() +
                " was left behind while it took over an earlier run, and lacks "
                "some of its cases: resume that run again, with --force");
  ResumeInfo out;
  if (closed) {
    Results earlier = load(path);
    out.info = std::move(earlier.info);
    out.config = std::move(earlier.config);
  } else {
    PartialReader reader(path, Trust::others);
    out.info = std::move(reader.start.info);
    out.config = std::move(reader.start.config);
  }
  out.memory_per_rank_bytes = memory_of(out.config);
  out.seed_given = out.config.is_object() && out.config.value("seed-given", Json()) == Json(true);
  out.file = path;
  if (!closed) out.file.replace_extension();
  out.elapsed_s = seconds_since(out.info.started);
  return out;
}

bool is_final(const CaseData& c) noexcept {
  return (c.state == CaseState::pass || c.state == CaseState::fail) && unfinished_text(c).empty();
}

std::string resume_problem(const Writer::Start& then, const Writer::Start& now) {
  const RunInfo &a = then.info, &b = now.info;
  const auto number = [](std::uint64_t n) { return std::to_string(n); };
  std::string problem;
  const auto check = [&](std::string found) {
    if (problem.empty()) problem = std::move(found);
  };
  check(differ("version of assay", a.assay_version, b.assay_version));
  check(differ("seed", number(a.seed), number(b.seed)));
  check(differ("level", a.level, b.level));
  check(nodes_problem(then.entities, now.entities));
  check(ranks_problem(then.entities, now.entities));
  check(entities_problem(then.entities, now.entities));
  check(differ("memory per rank", number(memory_of(then.config)), number(memory_of(now.config))));
  if (a.plan_hash == b.plan_hash) return one_line(problem);
  check(config_problem(then.config, now.config));
  check(plan_problem(then.plan, now.plan));
  check(differ("plan hash", a.plan_hash, b.plan_hash));
  return one_line(problem);
}

std::string carry_over_problem(const Writer::Start& then, const Writer::Start& now) {
  const RunInfo &a = then.info, &b = now.info;
  std::string problem;
  const auto check = [&](std::string found) {
    if (problem.empty()) problem = std::move(found);
  };
  check(differ("version of assay", a.assay_version, b.assay_version));
  check(differ("seed", std::to_string(a.seed), std::to_string(b.seed)));
  check(differ("level", a.level, b.level));
  // A launch that ended before its plan has measured nothing, and knows nodes by their host names only.
  if (!then.plan.empty()) check(new_parts_problem(then.entities, now.entities));
  check(config_problem(then.config, now.config, true));
  return one_line(problem);
}

}  // namespace assay::results
