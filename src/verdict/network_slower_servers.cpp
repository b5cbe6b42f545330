// SPDX-License-Identifier: Apache-2.0
// Servers of storage of which half or more are slower for all clients, one of two for example: peers do not
// tell which are as they should be.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_screen.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

using Cells = std::map<int, std::map<int, double>>;  ///< rates by end of a server and of a client

Cells cells_of(const LinkSet& set) {
  Cells cells;
  for (const Pair& p : set.pairs) {
    const bool a_serves = set.ends[at(p.a)].server;
    if (a_serves == set.ends[at(p.b)].server) continue;
    cells[a_serves ? p.a : p.b][a_serves ? p.b : p.a] = p.mean();
  }
  return cells;
}

double median_rate(const std::map<int, double>& of_clients) {
  std::vector<double> rates;
  for (const auto& [client, rate] : of_clients) rates.push_back(rate);
  return median(rates);
}

}  // namespace

std::optional<SlowerServers> slower_servers(const LinkSet& set) {
  constexpr double nearly_no_client = 0.1;
  if (!set.to_servers()) return {};
  const auto cells = cells_of(set);
  if (cells.size() < 2) return {};
  const auto best = std::max_element(cells.begin(), cells.end(), [](const auto& a, const auto& b) {
    return median_rate(a.second) < median_rate(b.second);
  });
  SlowerServers out;
  out.faster = best->first;
  out.servers = cells.size();
  const double least = log_deficit(constants::peers_small_deficit);
  for (const auto& [server, clients] : cells) {
    std::vector<double> apart;
    for (const auto& [client, rate] : clients)
      if (const auto it = best->second.find(client); it != best->second.end())
        apart.push_back(it->second - rate);
    // All clients see it: half of the deficit is more than the noise of one.
    if (apart.empty() || median(apart) < least || quantile(apart, nearly_no_client) < least / 2) continue;
    out.slower.push_back(server);
    out.deficit = std::max(out.deficit, median(apart));
    out.clients = std::max(out.clients, apart.size());
  }
  if (2 * out.slower.size() < cells.size()) return {};
  return out;
}

void add_slower_servers(Judgement& j, const std::vector<Screened>& screened) {
  std::map<std::string, std::vector<const Screened*>> suites;
  for (const Screened& one : screened)
    if (one.apart) suites[one.set.series->suite].push_back(&one);
  for (const auto& [suite, all] : suites) {
    const Screened& worst = **std::max_element(
        all.begin(), all.end(),
        [](const Screened* a, const Screened* b) { return a->apart->deficit < b->apart->deficit; });
    const auto row = [&](int end) { return worst.set.ends[at(end)].row; };
    const SlowerServers& apart = *worst.apart;
    auto f = j.about(-1, "WARN", "abnormality", "split");
    f.suite = suite;
    f.metric = worst.set.series->full();
    f.unit = worst.set.series->unit;
    f.better = results::to_string(worst.set.series->better);
    f.deficit = fraction(apart.deficit);
    f.action = "MONITOR";
    std::vector<std::int32_t> rows;
    std::vector<std::string> slower;
    for (const int end : apart.slower) {
      rows.push_back(row(end));
      slower.push_back(j.entities.name(rows.back()));
    }
    f.members = slower;
    f.members.push_back(j.entities.name(row(apart.faster)));
    rows.push_back(row(apart.faster));
    const bool one = slower.size() == 1;
    f.text = "cluster: " + first_of(slower) + (one ? " is " : " are ") + (one ? "" : "up to ") +
             percent(*f.deficit) + " slower than " + f.members.back() + " for " +
             count(static_cast<std::int64_t>(apart.clients), "client", "clients") + " in " + f.metric +
             (apart.servers == 2 ? "; of two servers peers do not show which is right"
                                 : "; if half of " + std::to_string(apart.servers) +
                                       " servers or more are slow, peers do not show which are right") +
             ": compare with a limit or a baseline";
    j.add(std::move(f), rows, true);
  }
}

}  // namespace assay::verdict::network
