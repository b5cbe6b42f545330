// SPDX-License-Identifier: Apache-2.0
#include "supervisor/hang_attribution.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

namespace assay::supervisor {
namespace {

/// The links at which chains of waiting ranks end. Every rank is looked at once.
std::vector<std::pair<int, int>> open_links(const std::vector<MissingRank>& missing) {
  std::unordered_map<int, int> waits_for;  // of those that wait for one peer
  std::set<int> all;
  for (const MissingRank& s : missing) {
    all.insert(s.rank);
    if (s.at.peer != no_peer) waits_for.emplace(s.rank, s.at.peer);
  }
  std::set<std::pair<int, int>> links;
  std::unordered_map<int, int> seen_by;  // the walk that came by
  for (const MissingRank& s : missing) {
    int at = s.rank;
    for (; waits_for.contains(at) && !seen_by.contains(at); at = waits_for.at(at)) {
      seen_by.emplace(at, s.rank);
      const int next = waits_for.at(at);
      if (!waits_for.contains(next))
        links.insert(std::minmax(at, next));  // it has gone on, or waits in something else
    }
    if (!seen_by.contains(at) || seen_by.at(at) != s.rank) continue;
    // A cycle, seen for the first time: once around it.
    for (int on = at;;) {
      const int next = waits_for.at(on);
      links.insert(std::minmax(on, next));
      on = next;
      if (on == at) break;
    }
  }
  return {links.begin(), links.end()};
}

}  // namespace

bool stopped(const MissingRank& s) noexcept {
  return s.at.process_state == 'T' || s.at.process_state == 't' || s.at.process_state == 'Z';
}

bool all_wait(const std::vector<MissingRank>& missing) noexcept {
  return std::all_of(missing.begin(), missing.end(),
                     [](const MissingRank& s) { return !s.heard || stopped(s) || !may_compute(s.at.call); });
}

HangAttribution attribute_hang(const std::vector<MissingRank>& missing, double stuck_s) {
  HangAttribution found;
  if (missing.empty()) return found;
  const auto [first, last] =
      std::minmax_element(missing.begin(), missing.end(),
                          [](const MissingRank& a, const MissingRank& b) { return a.at.phase < b.at.phase; });
  const Phase behind = first->at.phase;
  const bool differ = behind != last->at.phase;
  const std::vector<std::function<bool(const MissingRank&)>> rules = {
      [](const MissingRank& s) { return !s.heard; },
      stopped,
      [&](const MissingRank& s) { return differ && s.at.phase == behind; },
      // MPI_Init is a call of its own, in which ranks wait for each other.
      [&](const MissingRank& s) {
        return may_compute(s.at.call) && s.at.phase != Phase::mpi_init && s.at.idle_s >= stuck_s;
      },
  };
  for (const auto& rule : rules) {
    for (const MissingRank& s : missing)
      if (rule(s)) found.at_fault.push_back(s.rank);
    if (!found.at_fault.empty()) return found;
  }
  found.links = open_links(missing);
  return found;
}

}  // namespace assay::supervisor
