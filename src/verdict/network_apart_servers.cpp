// SPDX-License-Identifier: Apache-2.0
// Servers of storage in two groups, of which one is slower for all clients: where no server is named, peers
// do not tell which group is as it should be.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/network_screen.hpp"
#include "verdict/peer_findings.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

/// Log rates by end of a client and of a server.
using Cells = std::map<int, std::map<int, double>>;

Cells cells_of(const LinkSet& set) {
  Cells cells;
  for (const Pair& p : set.pairs) {
    const bool a_serves = set.ends[at(p.a)].server;
    cells[a_serves ? p.b : p.a][a_serves ? p.a : p.b] = p.mean();
  }
  return cells;
}

/// The servers from the slowest on, each with its median over the clients beside their own other servers.
std::vector<std::pair<double, int>> ordered(const Cells& cells) {
  std::map<int, std::vector<double>> beside;
  for (const auto& [client, of] : cells) {
    double sum = 0;
    for (const auto& [server, rate] : of) sum += rate;
    for (const auto& [server, rate] : of)
      beside[server].push_back(rate - sum / static_cast<double>(of.size()));
  }
  std::vector<std::pair<double, int>> out;
  for (const auto& [server, rates] : beside) out.emplace_back(median(rates), server);
  std::sort(out.begin(), out.end());
  return out;
}

/// By client that met both groups: the mean of its faster servers less that of its slower ones.
std::vector<double> differences(const Cells& cells, const std::vector<int>& slower) {
  std::vector<double> out;
  for (const auto& [client, of] : cells) {
    double sums[2] = {0, 0}, counts[2] = {0, 0};
    for (const auto& [server, rate] : of) {
      const bool slow = std::find(slower.begin(), slower.end(), server) != slower.end();
      sums[slow] += rate;
      ++counts[slow];
    }
    if (counts[0] > 0 && counts[1] > 0) out.push_back(sums[0] / counts[0] - sums[1] / counts[1]);
  }
  return out;
}

/// Servers of this suite have findings of their own.
bool are_told(const Judgement& j, const std::string& suite) {
  return std::any_of(j.found.begin(), j.found.end(), [&](const Found& f) {
    return f.finding.suite == suite && f.finding.severity != "INFO" &&
           (f.finding.level == "server" || f.finding.kind == "split");
  });
}

std::string groups_text(const results::Finding& f, std::size_t slower) {
  const auto split = f.members.begin() + static_cast<std::ptrdiff_t>(slower);
  if (f.members.size() == 2)
    return f.members[0] + " is " + percent(*f.deficit) + " slower than " + f.members[1];
  return std::to_string(slower) + " of " + std::to_string(f.members.size()) + " servers are " +
         percent(*f.deficit) + " slower than " + first_of({split, f.members.end()}) + ": " +
         first_of({f.members.begin(), split});
}

}  // namespace

std::optional<ApartServers> apart_servers(const LinkSet& set) {
  if (std::none_of(set.ends.begin(), set.ends.end(), [](const auto& end) { return end.server; })) return {};
  const Cells cells = cells_of(set);
  const auto servers = ordered(cells);
  std::size_t cut = 0;  // how many are slower: up to the widest gap
  for (std::size_t i = 1; i < servers.size(); ++i)
    if (cut == 0 || servers[i].first - servers[i - 1].first > servers[cut].first - servers[cut - 1].first)
      cut = i;
  if (cut == 0) return {};
  ApartServers out;
  for (std::size_t i = 0; i < servers.size(); ++i)
    (i < cut ? out.slower : out.faster).push_back(servers[i].second);
  const double least = log_deficit(constants::peers_small_deficit);
  const auto apart = differences(cells, out.slower);
  // All clients see it: half of the deficit is more than the noise of one.
  if (apart.empty() || servers[cut].first - servers[cut - 1].first < least || median(apart) < least ||
      *std::min_element(apart.begin(), apart.end()) < least / 2)
    return {};
  out.deficit = median(apart);
  out.clients = apart.size();
  return out;
}

void add_apart_servers(Judgement& j, const std::vector<Screened>& screened) {
  std::map<std::string, std::vector<const Screened*>> suites;
  for (const Screened& one : screened)
    if (one.apart) suites[one.set.series->suite].push_back(&one);
  for (const auto& [suite, all] : suites) {
    if (are_told(j, suite)) continue;
    const Screened& worst = **std::max_element(
        all.begin(), all.end(),
        [](const Screened* a, const Screened* b) { return a->apart->deficit < b->apart->deficit; });
    auto f = j.about(-1, "WARN", "abnormality", "split");
    f.suite = suite;
    f.metric = worst.set.series->full();
    f.unit = worst.set.series->unit;
    f.better = results::to_string(worst.set.series->better);
    f.deficit = fraction(worst.apart->deficit);
    f.action = "MONITOR";
    std::vector<std::int32_t> rows;
    for (const auto* group : {&worst.apart->slower, &worst.apart->faster})
      for (const int end : *group) {
        rows.push_back(worst.set.ends[at(end)].row);
        f.members.push_back(j.entities.name(rows.back()));
      }
    f.text = "cluster: " + groups_text(f, worst.apart->slower.size()) + " for " +
             count(static_cast<std::int64_t>(worst.apart->clients), "client", "clients") + " in " + f.metric +
             (f.members.size() == 2 ? "; of two servers peers do not show which is right"
                                    : "; peers do not show which are right") +
             ": compare with a limit or a baseline";
    j.add(std::move(f), std::move(rows), true);
  }
}

}  // namespace assay::verdict::network
