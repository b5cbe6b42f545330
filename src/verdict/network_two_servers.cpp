// SPDX-License-Identifier: Apache-2.0
// Two servers of storage, one of which is slower for all clients: peers do not tell which is as it should be.
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

/// By end of a client: its rate from one server less that from the other.
std::vector<double> differences(const LinkSet& set, int first, int second) {
  std::map<int, std::map<int, double>> cells;  // by client and server
  for (const Pair& p : set.pairs) {
    const bool a_serves = set.ends[at(p.a)].server;
    cells[a_serves ? p.b : p.a][a_serves ? p.a : p.b] = p.mean();
  }
  std::vector<double> out;
  for (const auto& [client, of] : cells)
    if (of.contains(first) && of.contains(second)) out.push_back(of.at(first) - of.at(second));
  return out;
}

}  // namespace

std::optional<TwoServers> two_servers(const LinkSet& set) {
  std::vector<int> servers;
  for (std::size_t e = 0; e < set.ends.size(); ++e)
    if (set.ends[e].server) servers.push_back(static_cast<int>(e));
  if (servers.size() != 2) return {};
  auto apart = differences(set, servers[0], servers[1]);
  if (apart.empty()) return {};
  const bool first_slower = median(apart) < 0;
  for (double& d : apart) d = std::abs(d) * ((d < 0) == first_slower ? 1 : -1);
  const double least = log_deficit(constants::peers_small_deficit);
  // All clients see it: half of the deficit is more than the noise of one.
  if (median(apart) < least || *std::min_element(apart.begin(), apart.end()) < least / 2) return {};
  return TwoServers{servers[first_slower ? 0 : 1], servers[first_slower ? 1 : 0], median(apart),
                    apart.size()};
}

void add_two_servers(Judgement& j, const std::vector<Screened>& screened) {
  std::map<std::string, std::vector<const Screened*>> suites;
  for (const Screened& one : screened)
    if (one.apart) suites[one.set.series->suite].push_back(&one);
  for (const auto& [suite, all] : suites) {
    const Screened& worst = **std::max_element(
        all.begin(), all.end(),
        [](const Screened* a, const Screened* b) { return a->apart->deficit < b->apart->deficit; });
    const auto row = [&](int end) { return worst.set.ends[at(end)].row; };
    const TwoServers& two = *worst.apart;
    auto f = j.about(-1, "WARN", "abnormality", "split");
    f.suite = suite;
    f.metric = worst.set.series->full();
    f.unit = worst.set.series->unit;
    f.better = results::to_string(worst.set.series->better);
    f.deficit = fraction(two.deficit);
    f.action = "MONITOR";
    f.members = {j.entities.name(row(two.slower)), j.entities.name(row(two.faster))};
    f.text = "cluster: " + f.members[0] + " is " + percent(*f.deficit) + " slower than " + f.members[1] +
             " for " + count(static_cast<std::int64_t>(two.clients), "client", "clients") + " in " +
             f.metric +
             "; of two servers peers do not show which is right: compare with a limit or a baseline";
    j.add(std::move(f), {row(two.slower), row(two.faster)}, true);
  }
}

}  // namespace assay::verdict::network
