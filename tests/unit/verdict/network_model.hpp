// SPDX-License-Identifier: Apache-2.0
// A synthetic network for tests of the verdict on links: capacities of NICs, uplinks of leaves, single bad
// pairs; noise and one-sided spikes of congestion.
#pragma once

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/retest.hpp"

namespace assay::fabricate {

struct Network {
  int nodes = 64, leaves = 0,
      nics = 1;  ///< NICs per node; with several, NIC k hangs on leaf k of the node's group
  std::uint64_t seed = 1;
  double noise = 0.01, spread = 0.003, spikes = 0.05, spike_mean = 0.10;
  // Faults as fractions of the rate.
  std::map<int, double> slow_out, slow_in;      ///< by end (node * nics + nic)
  std::map<int, double> leaf_slow;              ///< links that cross
  std::map<std::pair<int, int>, double> pairs;  ///< by ends, the smaller first; both ways
};

class NetworkRun {
 public:
  explicit NetworkRun(const Network& n) : n_(n), random_(RandomStream(n.seed, "network")) {
    r_ = cluster(0);
    r_.info.seed = n.seed;
    for (int l = 0; l < n.leaves; ++l)
      r_.entities.push_back(
          {"switch", "L" + std::to_string(l), "path", "switch:L" + std::to_string(l), 0, -1});
    auto& table = r_.inventory["nic"];
    for (int i = 0; i < n.nodes; ++i) {
      const auto node = static_cast<std::int32_t>(r_.entities.size());
      const std::string name = "node" + std::to_string(i);
      r_.entities.push_back({"node", "id-" + name, "dmi", name, 0, -1});
      for (int k = 0; k < n.nics; ++k) {
        ends_.push_back(static_cast<std::int32_t>(r_.entities.size()));
        const std::string nic = name + "/mlx5_" + std::to_string(k);
        r_.entities.push_back({"nic", "id-" + nic, "guid", nic, node, -1});
        table.entity.push_back(ends_.back());
        if (n.leaves > 0) table.text["switch"].push_back("L" + std::to_string(leaf(i * n.nics + k)));
      }
      if (n.nics == 1) {  // measured by its only device
        ends_.back() = static_cast<std::int32_t>(r_.entities.size());
        r_.entities.push_back({"device", "id-" + name + "/d", "path", name + "/cores0-1", node, i});
      }
    }
    add_selftest(r_, "pair");
  }

  results::Results& results() { return r_; }
  int leaf(int end) const {
    return n_.leaves == 0 ? -1 : static_cast<int>(static_cast<long>(end / n_.nics) * n_.leaves / n_.nodes);
  }
  std::int32_t end_row(int end) const { return ends_[static_cast<std::size_t>(end)]; }

  using Round = std::vector<std::pair<int, int>>;
  /// `crossing` rounds of random pairs over all nodes, and `inside` rounds within leaves; NIC k meets NIC k.
  std::vector<Round> rounds(int crossing, int inside) const {
    std::vector<Round> all;
    for (int c = 0; c < crossing; ++c) all.push_back(matching(members(-1), "x" + std::to_string(c)));
    for (int i = 0; i < inside; ++i) {
      Round round;
      for (int l = 0; l < n_.leaves; ++l) {
        const auto part = matching(members(l), "i" + std::to_string(i) + "/" + std::to_string(l));
        round.insert(round.end(), part.begin(), part.end());
      }
      all.push_back(round);
    }
    return all;
  }
  /// Every two nodes once.
  std::vector<Round> tournament() const {
    std::vector<Round> all;
    const int n = n_.nodes + n_.nodes % 2;
    for (int t = 0; t + 1 < n; ++t) {
      Round& round = all.emplace_back();
      for (int i = 0; i < n / 2; ++i) {
        const int a = i == 0 ? n - 1 : (t + i) % (n - 1), b = (t + n - 1 - i) % (n - 1);
        if (a < n_.nodes && b < n_.nodes)
          for (int k = 0; k < n_.nics; ++k) round.push_back({a * n_.nics + k, b * n_.nics + k});
      }
    }
    return all;
  }

  /// Adds a case in which the pairs of the rounds were measured both ways, `samples` each.
  void measure(const std::string& name, const std::vector<Round>& rounds, int samples = 6,
               bool retest = false) {
    results::CaseData c;
    c.suite = "p2p";
    c.name = name;
    c.kind = "link";
    c.stage = "pairs";
    c.required = !retest;
    c.case_key = "p2p-key";
    c.parameters["bytes"] = 4194304;
    for (int s = 0; s < samples; ++s) {
      c.sample.push_back(s);
      c.block.push_back(s * 3 / samples);
    }
    results::Metric m{"bandwidth", "B/s", results::Better::higher, true, results::Role::metric, true, {}};
    results::Metric in{"round", "count", results::Better::none, false, results::Role::covariate, true, {}};
    const RandomStream noise = random_.child(name);
    // A pair that is in several rounds is one row with the samples of all of them.
    std::map<std::pair<int, int>, std::vector<int>> where;
    std::vector<std::pair<int, int>> order;
    for (std::size_t r = 0; r < rounds.size(); ++r)
      for (const auto& [a, b] : rounds[r])
        for (const auto& link : {std::pair{a, b}, std::pair{b, a}}) {
          auto& in_rounds = where[link];
          if (in_rounds.empty()) order.push_back(link);
          in_rounds.push_back(static_cast<int>(r));
        }
    std::uint64_t draw = 0;
    for (const auto& [a, b] : order) {
      const auto& in_rounds = where[{a, b}];
      c.entity.push_back(link_row(a, b));
      c.source.push_back(end_row(a));
      c.destination.push_back(end_row(b));
      c.count.push_back(samples);
      for (int s = 0; s < samples; ++s) {
        const auto k = static_cast<std::size_t>(s) * in_rounds.size() / static_cast<std::size_t>(samples);
        // All samples of a round share its congestion, as in the reference.
        const double y = truth(a, b) + event(name, std::min(a, b), std::max(a, b), in_rounds[k]) +
                         0.2 * n_.noise * normal(noise, draw++);
        m.values.push_back(10e9 * std::exp(y));
        in.values.push_back(in_rounds[k]);
        c.t.push_back(s);
      }
    }
    c.metrics = {m, in};
    if (!retest) {
      results::PlanRow plan;
      plan.suite = "p2p";
      plan.name = name;
      plan.required = true;
      plan.entities = static_cast<std::int64_t>(c.entity.size());
      r_.plan.push_back(plan);
    }
    r_.cases.push_back(std::move(c));
  }

  /// Measures what a retest asks for, as the retest stage does.
  void measure(const verdict::Retest& retest) {
    std::map<std::int32_t, int> end_of;
    for (std::size_t e = 0; e < ends_.size(); ++e) end_of[ends_[e]] = static_cast<int>(e);
    std::vector<Round> all;
    for (const auto& round : retest.rounds) {
      Round& mine = all.emplace_back();
      for (const auto& link : round) mine.push_back({end_of.at(link.source), end_of.at(link.destination)});
    }
    measure(retest.name + ".c" + std::to_string(retest.number), all, retest.samples, true);
  }

 private:
  double normal(const RandomStream& s, std::uint64_t i) const {
    const double u = 1.0 - s.uniform(2 * i), v = s.uniform(2 * i + 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
  static double fault(const std::map<int, double>& faults, int key) {
    const auto it = faults.find(key);
    return it == faults.end() ? 0 : std::log1p(-it->second);
  }
  double truth(int a, int b) const {
    const RandomStream hardware = random_.child("hardware");
    const auto capacity = [&](int e) { return n_.spread * normal(hardware, static_cast<std::uint64_t>(e)); };
    double y = std::min(capacity(a) + fault(n_.slow_out, a), capacity(b) + fault(n_.slow_in, b));
    const int la = leaf(a), lb = leaf(b);
    if (la != lb) y += std::min(fault(n_.leaf_slow, la), fault(n_.leaf_slow, lb));
    const auto it = n_.pairs.find({std::min(a, b), std::max(a, b)});
    return y + (it == n_.pairs.end() ? 0 : std::log1p(-it->second));
  }
  /// Noise of one pair in one round: both directions see it.
  double event(const std::string& name, int a, int b, int round) const {
    const RandomStream s = random_.child(name + "/" + std::to_string(round));
    const auto i = static_cast<std::uint64_t>(a) * 100000 + static_cast<std::uint64_t>(b);
    const double spike =
        s.uniform(8 * i + 4) < n_.spikes ? -n_.spike_mean * std::log(1 - s.uniform(8 * i + 5)) : 0;
    return n_.noise * normal(s, 4 * i) - spike;
  }
  std::vector<int> members(int leaf_index) const {
    std::vector<int> nodes;
    for (int i = 0; i < n_.nodes; ++i)
      if (leaf_index < 0 || leaf(i * n_.nics) == leaf_index) nodes.push_back(i);
    return nodes;
  }
  Round matching(const std::vector<int>& nodes, const std::string& name) const {
    Round round;
    const auto order = random_.child(name).permutation(nodes.size());
    for (std::size_t i = 0; i + 1 < order.size(); i += 2)
      for (int k = 0; k < n_.nics; ++k)
        round.push_back({nodes[order[i]] * n_.nics + k, nodes[order[i + 1]] * n_.nics + k});
    return round;
  }
  std::int32_t link_row(int a, int b) {
    const auto [it, fresh] = links_.try_emplace({a, b}, static_cast<std::int32_t>(r_.entities.size()));
    if (fresh) {
      const auto name = [&](int e) { return r_.entities[static_cast<std::size_t>(end_row(e))].name; };
      r_.entities.push_back({"link", name(a) + ">" + name(b), "path", name(a) + ">" + name(b), 0, -1});
    }
    return it->second;
  }

  Network n_;
  RandomStream random_;
  results::Results r_;
  std::vector<std::int32_t> ends_;
  std::map<std::pair<int, int>, std::int32_t> links_;
};

}  // namespace assay::fabricate
