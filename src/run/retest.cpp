// SPDX-License-Identifier: Apache-2.0
#include "run/retest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/json.hpp"
#include "verdict/retest/retest.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

const Case& screening_case(const Plan& plan, const std::string& path) {
  for (const Case& c : plan.cases)
    if (c.path() == path && c.not_applicable.empty()) return c;
  throw Error(ErrorKind::internal, "no planned case to measure again: " + path);
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

/// Rounds that the screening case had. Where it does not tell: from the links that it reports, two directions
/// a pair, all ranks in each round.
double screening_rounds(const Case& c, const Topology& topology) {
  if (c.rounds > 0) return static_cast<double>(c.rounds);
  const double pairs_per_round = std::max(1.0, topology.size() / 2.0);
  return std::max(1.0, std::ceil(static_cast<double>(c.entities) / 2.0 / pairs_per_round));
}

RetestOrder order_of(const verdict::Retest& retest, const EntityTable& entities) {
  RetestOrder order;
  order.path = retest.suite + "/" + retest.name;
  order.number = retest.number;
  order.variant = retest.variant;
  order.samples = retest.samples;
  order.devices = retest.candidates;
  order.devices.insert(order.devices.end(), retest.controls.begin(), retest.controls.end());
  for (const auto& round : retest.rounds) {
    auto& links = order.rounds.emplace_back();
    for (const verdict::LinkEnds& link : round) {
      links.emplace_back(link.source, link.destination);
      for (const int row : {link.source, link.destination})
        if (const auto entity = entities.row(row); entity.kind == "server") order.servers[row] = entity.name;
    }
  }
  return order;
}

/// The share of a case's time that makes it fit what is left; 0 where that is less than
/// `RetestPlanner::shortest_share`.
double fitting_share(const Case& c, double left_s) {
  if (c.expected_s() <= left_s) return 1;
  const double share = (left_s - c.overhead_seconds) / (c.expected_s() - c.overhead_seconds);
  const bool enough = share >= RetestPlanner::shortest_share && share * c.seconds >= c.min_seconds;
  return enough ? share : 0;
}

}  // namespace

std::string to_text(const Order& order) {
  return Json{{"seconds", order.seconds}, {"retest", order.retest}}.dump();
}

Order order_from(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(ErrorKind::internal, "a case came without its order");
  return {json.at("seconds"), json.at("retest")};
}

std::string to_text(const RetestOrder& order) {
  return Json{{"path", order.path},       {"number", order.number},        {"devices", order.devices},
              {"rounds", order.rounds},   {"samples", order.samples},      {"variant", order.variant},
              {"servers", order.servers}, {"time_share", order.time_share}}
      .dump();
}

RetestOrder retest_order_from(const std::string& text) {
  const Json json = Json::parse(text);
  RetestOrder order;
  order.path = json.at("path");
  order.number = json.at("number");
  order.devices = json.at("devices").get<std::vector<int>>();
  order.rounds = json.at("rounds").get<std::vector<std::vector<std::pair<int, int>>>>();
  order.samples = json.at("samples");
  order.variant = json.at("variant");
  order.servers = json.at("servers").get<std::map<int, std::string>>();
  order.time_share = json.at("time_share");
  return order;
}

int rank_for(int row, const Topology& topology, const EntityTable& entities) {
  for (results::Entity e; row >= 0 && static_cast<std::size_t>(row) < entities.size(); row = e.parent) {
    e = entities.row(row);
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

Case retest_case(const Plan& plan, RetestOrder order, const Topology& topology, const EntityTable& entities) {
  Case c = screening_case(plan, order.path);
  c.name += ".c" + std::to_string(order.number);
  c.required = false;
  c.in_every_pass = false;
  if (!order.variant.empty()) c.parameters["variant"] = order.variant;
  if (c.entity_kind == "link") {
    order.devices.clear();
    if (!order.rounds.empty()) {
      const double rounds = static_cast<double>(order.rounds.size());
      c.seconds *= rounds / screening_rounds(c, topology);
      std::set<std::pair<int, int>> pairs;
      for (const auto& round : order.rounds) pairs.insert(round.begin(), round.end());
      c.entities = 2 * static_cast<std::int64_t>(pairs.size());
    }
  } else if (c.serial) {
    c.turns = RetestOrder::visits * most_on_a_node(order.devices, topology, entities);
    c.entities = static_cast<std::int64_t>(order.devices.size());
  } else {
    order.devices.clear();  // the others are its load: all measure again
    order.rounds.clear();
    c.seconds = std::min(RetestOrder::visits * c.seconds, c.retest_seconds);
  }
  c.seconds *= order.time_share;
  c.deadline_s = 10.0 + 4.0 * c.expected_s();
  c.retest = std::make_shared<const RetestOrder>(std::move(order));
  return c;
}

void join_visits(CaseRecord& record) {
  std::vector<CaseRecord::Row> joined;
  std::map<std::tuple<int, int, int, std::string>, std::size_t> known;
  for (CaseRecord::Row& row : record.rows_) {
    const auto [at, fresh] =
        known.try_emplace({row.entity, row.source, row.destination, row.server}, joined.size());
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

std::vector<Case> RetestPlanner::ask(const results::Results& results, const verdict::Options& options,
                                     const Plan& plan, const Topology& topology, const EntityTable& entities,
                                     const std::function<double()>& left_s) {
  std::vector<Case> out;
  if (rounds_++ >= rounds_at_most) return out;
  left_out_.clear();
  const auto wanted = verdict::retests(results, options);
  double rest_s = left_s();
  for (const verdict::Retest& retest : wanted) {
    RetestOrder order = order_of(retest, entities);
    const std::string name = order.path + ".c" + std::to_string(order.number);
    if (asked_.contains(name)) continue;
    order.time_share = fitting_share(retest_case(plan, order, topology, entities), rest_s);
    if (order.time_share <= 0) {
      left_out_.insert(fmt::format("{}/{} ({})", retest.suite, retest.name, retest.metric));
      continue;
    }
    Case c = retest_case(plan, std::move(order), topology, entities);
    asked_.insert(name);
    rest_s -= c.expected_s();
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace assay
