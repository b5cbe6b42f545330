// SPDX-License-Identifier: Apache-2.0
// Simulated networks of the tests of links.
#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "simulate/schedule.hpp"
#include "simulate/simulate.hpp"
#include "tests/unit/fabricate.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::network_rig {

using namespace fabricate;
using simulate::Spec;

/// Bandwidth of links between nodes with one NIC each. `faults` are written as for `assay simulate --fault`.
inline Spec network(std::int64_t nodes, std::int64_t leaves = 0,
                    const std::vector<std::string>& faults = {}) {
  Spec spec;
  spec.nodes = nodes;
  spec.leaves = leaves;
  spec.samples = 6;
  spec.metrics = simulate::pick_metrics({"p2p/bandwidth-uni-*"});
  for (const std::string& fault : faults) spec.faults.push_back(simulate::parse_fault(fault));
  return spec;
}

/// All cases of pairs, with ten samples.
inline Spec all_pairs(std::int64_t nodes, std::int64_t leaves, std::uint64_t seed,
                      const std::vector<std::string>& faults) {
  Spec spec = network(nodes, leaves, faults);
  spec.metrics = simulate::pick_metrics({"p2p"});
  spec.samples = 10;
  spec.seed = seed;
  return spec;
}

inline Spec thousand(const std::vector<std::string>& faults = {}) { return network(1024, 32, faults); }

/// Few nodes, of which every two meet, without congestion.
inline Spec few(std::int64_t nodes, const std::vector<std::string>& faults = {}) {
  Spec spec = network(nodes, 0, faults);
  spec.link_cv = 0.03;
  spec.within_cv = 0.006;
  spec.spike_share = 0;
  return spec;
}

inline std::string slow_nic(int node, double percent) {
  return "slow:node=" + std::to_string(node) + ",nic=0,percent=" + std::to_string(percent);
}

/// Both directions of a pair of ranks.
inline std::vector<std::string> slow_pair(std::int64_t a, std::int64_t b, double percent) {
  const auto one = [&](std::int64_t from, std::int64_t to) {
    return "slowlink:pair=" + std::to_string(from) + ">" + std::to_string(to) +
           ",percent=" + std::to_string(percent);
  };
  return {one(a, b), one(b, a)};
}

/// The measurements before any retest, judged against each other and as those of a real run.
inline results::Results screened(const Spec& spec) {
  auto r = simulate::screen(spec);
  r.inventory["nic"].number.clear();
  r.info.injected = false;
  return r;
}

/// The retests that links are asked for.
inline std::vector<verdict::Retest> wanted_of(const results::Results& r) {
  const auto options = verdict::options_from(r);
  verdict::Judgement j(r, options);
  verdict::collect_series(j);
  return verdict::network_retests(j).asked;
}

/// Measures again what is asked for until nothing is, judges.
inline results::VerdictData retested(results::Results& r, const Spec& spec) {
  simulate::run_retests(r, spec, verdict::options_from(r));
  return judge(r);
}

inline results::VerdictData whole_run(const Spec& spec) {
  auto r = screened(spec);
  return retested(r, spec);
}

/// Names of findings of WARN and above, with their levels.
inline std::vector<std::string> accused(const results::VerdictData& v) {
  std::vector<std::string> names;
  for (const auto& f : v.findings)
    if (f.severity != "INFO") names.push_back(f.level + " " + f.name);
  return names;
}

inline const results::Finding& worst(const results::VerdictData& v) { return v.findings.front(); }

inline int seeds(int normally, int nightly) {
  return std::getenv("ASSAY_NIGHTLY") != nullptr ? nightly : normally;
}

/// How many of `count` runs accuse exactly `expected` (empty: nobody).
inline int exact(Spec spec, int count, const std::vector<std::string>& expected) {
  int right = 0;
  for (int seed = 1; seed <= count; ++seed) {
    spec.seed = static_cast<std::uint64_t>(seed);
    const auto v = whole_run(spec);
    const auto names = accused(v);
    right += names == expected ? 1 : 0;
    if (names == expected) continue;
    std::cout << "seed " << seed << ": " << names.size() << " accused\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(4, v.findings.size()); ++i)
      std::cout << "  " << v.findings[i].text << "\n";
  }
  return right;
}

}  // namespace assay::network_rig
