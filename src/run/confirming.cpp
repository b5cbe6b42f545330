// SPDX-License-Identifier: Apache-2.0
#include "run/confirming.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/json.hpp"
#include "verdict/confirm.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

const Case& screening_case(const Plan& plan, const std::string& path) {
  for (const Case& c : plan.cases)
    if (c.path() == path && c.not_applicable.empty()) return c;
  throw Error(ErrorKind::internal, "no planned case to confirm: " + path);
}

/// The most of the chosen devices that any one node has: they take turns.
int most_on_a_node(const std::vector<int>& devices, const Topology& topology, const EntityTable& entities) {
  std::map<int, int> per_node;
  int most = 1;
  for (const int row : devices) {
    const int rank = rank_for(row, topology, entities);
    if (rank >= 0) most = std::max(most, ++per_node[topology.ranks[static_cast<std::size_t>(rank)].node]);
  }
  return most;
}

/// Rounds that the screening case had, from the links that it reports: two directions a pair, all ranks in each round.
double screening_rounds(const Case& c, const Topology& topology) {
  const double pairs_per_round = std::max(1.0, topology.size() / 2.0);
  return std::max(1.0, std::ceil(static_cast<double>(c.entities) / 2.0 / pairs_per_round));
}

Confirm order_of(const verdict::Recheck& recheck) {
  Confirm confirm;
  confirm.path = recheck.suite + "/" + recheck.name;
  confirm.number = recheck.number;
  confirm.variant = recheck.variant;
  confirm.samples = recheck.samples;
  confirm.devices = recheck.candidates;
  confirm.devices.insert(confirm.devices.end(), recheck.controls.begin(), recheck.controls.end());
  for (const auto& round : recheck.rounds) {
    auto& links = confirm.rounds.emplace_back();
    for (const verdict::LinkEnds& link : round) links.emplace_back(link.source, link.destination);
  }
  return confirm;
}

}  // namespace

std::string to_text(const Order& order) { return Json{{"seconds", order.seconds}, {"confirm", order.confirm}}.dump(); }

Order order_from(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(ErrorKind::internal, "a case came without its order");
  return {json.at("seconds"), json.at("confirm")};
}

std::string to_text(const Confirm& confirm) {
  return Json{{"path", confirm.path},       {"number", confirm.number}, {"devices", confirm.devices},
              {"rounds", confirm.rounds}, {"samples", confirm.samples}, {"variant", confirm.variant}}
      .dump();
}

Confirm confirm_from(const std::string& text) {
  const Json json = Json::parse(text);
  Confirm confirm;
  confirm.path = json.at("path");
  confirm.number = json.at("number");
  confirm.devices = json.at("devices").get<std::vector<int>>();
  confirm.rounds = json.at("rounds").get<std::vector<std::vector<std::pair<int, int>>>>();
  confirm.samples = json.at("samples");
  confirm.variant = json.at("variant");
  return confirm;
}

int rank_for(int row, const Topology& topology, const EntityTable& entities) {
  const auto& rows = entities.rows();
  for (; row >= 0 && static_cast<std::size_t>(row) < rows.size(); row = rows[static_cast<std::size_t>(row)].parent) {
    const results::Entity& e = rows[static_cast<std::size_t>(row)];
    if (e.rank >= 0) return e.rank;
    if (e.kind != "node") continue;
    for (std::size_t node = 0; node < topology.nodes.size(); ++node)
      if (entities.node(static_cast<int>(node)) == row) {
        const auto ranks = topology.ranks_of(static_cast<int>(node));
        return ranks.empty() ? -1 : ranks.front();
      }
  }
  return -1;
}

Case confirming_case(const Plan& plan, Confirm confirm, const Topology& topology, const EntityTable& entities) {
  Case c = screening_case(plan, confirm.path);
  c.name += ".c" + std::to_string(confirm.number);
  c.required = false;
  c.in_every_pass = false;
  if (!confirm.variant.empty()) c.parameters["variant"] = confirm.variant;
  if (c.entity_kind == "link") {
    confirm.devices.clear();
    if (!confirm.rounds.empty()) {
      const double rounds = static_cast<double>(confirm.rounds.size());
      c.seconds *= rounds / screening_rounds(c, topology);
      std::set<std::pair<int, int>> pairs;
      for (const auto& round : confirm.rounds) pairs.insert(round.begin(), round.end());
      c.entities = 2 * static_cast<std::int64_t>(pairs.size());
    }
  } else if (c.serial) {
    c.turns = Confirm::visits * most_on_a_node(confirm.devices, topology, entities);
    c.entities = static_cast<std::int64_t>(confirm.devices.size());
  } else {
    confirm.devices.clear();  // the others are its load: all measure again
    confirm.rounds.clear();
    c.seconds *= Confirm::visits;
  }
  c.deadline_s = 10.0 + 4.0 * c.expected_s();
  c.confirm = std::make_shared<const Confirm>(std::move(confirm));
  return c;
}

void join_visits(CaseRecord& record) {
  std::vector<CaseRecord::Row> joined;
  std::map<std::tuple<int, int, int>, std::size_t> known;
  for (CaseRecord::Row& row : record.rows_) {
    const auto [at, fresh] = known.try_emplace({row.entity, row.source, row.destination}, joined.size());
    if (fresh) {
      joined.push_back(std::move(row));
      continue;
    }
    CaseRecord::Row& into = joined[at->second];
    const std::int32_t next = into.block.empty() ? 0 : *std::ranges::max_element(into.block) + 1;
    const std::int32_t first = row.block.empty() ? 0 : *std::ranges::min_element(row.block);
    into.t.insert(into.t.end(), row.t.begin(), row.t.end());
    for (const std::int32_t block : row.block) into.block.push_back(next + block - first);
    for (const CaseRecord::MetricSpec& metric : record.metrics_) {
      auto& values = into.values[metric.name];
      const auto& more = row.values[metric.name];
      if (metric.per_sample)
        values.insert(values.end(), more.begin(), more.end());
      else if (!more.empty())
        values = more;
    }
  }
  record.rows_ = std::move(joined);
}

Confirming::Ask Confirming::ask(const results::Results& results, const verdict::Options& options, const Plan& plan, const Topology& topology,
                                const EntityTable& entities, double left_s) {
  Ask out;
  if (rounds_++ >= rounds_at_most) return out;
  for (const verdict::Recheck& recheck : verdict::rechecks(results, options)) {
    Confirm confirm = order_of(recheck);
    const std::string name = confirm.path + ".c" + std::to_string(confirm.number);
    if (asked_.contains(name)) continue;
    Case c = confirming_case(plan, std::move(confirm), topology, entities);
    if (c.expected_s() > left_s) {
      out.left_out.push_back(fmt::format("{}/{} ({})", recheck.suite, recheck.name, recheck.metric));
      continue;
    }
    asked_.insert(name);
    left_s -= c.expected_s();
    out.cases.push_back(std::move(c));
  }
  return out;
}

}  // namespace assay
