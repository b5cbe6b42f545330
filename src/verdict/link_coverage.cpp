// SPDX-License-Identifier: Apache-2.0
#include "verdict/link_coverage.hpp"

#include <algorithm>
#include <cmath>

#include "verdict/judgement.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict {
namespace {

std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }

template <class T>
std::pair<T, T> ordered(const T& a, const T& b) {
  return a < b ? std::pair(a, b) : std::pair(b, a);
}

/// What every switch has of each name: "eth0" of n1/eth0.
using Ports = std::map<std::string, std::map<std::string, std::size_t>>;

class Collector {
 public:
  Collector(const Judgement& j, LinkCoverage& out) : j_(j), places_(j), out_(out) {}

  void possible() {
    const double n = static_cast<double>(j_.entities.nodes().size());
    out_.node_pairs = n * (n - 1) / 2;
    const auto it = j_.results.inventory.find("nic");
    if (it == j_.results.inventory.end()) return;
    std::map<std::string, double> of_name;
    std::map<std::string, std::set<std::string>> switches;  // by name of NIC
    const auto* state = text_column(it->second, {"state"});
    const auto riding = riding_interfaces(j_);
    for (std::size_t i = 0; i < it->second.entity.size(); ++i) {
      const auto row = it->second.entity[i];
      const std::string name = j_.entities.name(row), own = last_part(name);
      if ((state != nullptr && (*state)[i] != "up") || riding.contains(name) || own == "lo") continue;
      of_name[own] += 1;
      const std::string& leaf = places_.leaf_of(row);
      if (leaf.empty()) continue;
      out_.cables[row];
      switches[own].insert(leaf);
    }
    for (const auto& [name, count] : of_name) out_.nic_pairs += count * (count - 1) / 2;
    for (const auto& [name, leaves] : switches)
      for (const auto& a : leaves)
        for (const auto& b : leaves)
          if (a < b) out_.switches[{a, b}];
  }

  void add(const results::CaseData& c) {
    const auto* payload = c.find("payload");
    if (c.kind != "link" || payload == nullptr || payload->values.size() != c.entities()) return;
    if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) return;
    const auto bytes = payload->values.held();
    for (std::size_t r = 0; r < c.entities(); ++r) {
      if (r >= c.source.size() || r >= c.destination.size() || !(bytes[r] > 0)) continue;
      const auto from = c.source[r], to = c.destination[r], a = j_.entities.node(from),
                 b = j_.entities.node(to);
      if (a < 0 || b < 0 || a == b) continue;
      const auto use = [&](LinkUse& link) {
        link.bytes += bytes[r];
        link.cases.insert(c.suite + "/" + base_name(c.name));
      };
      use(out_.nodes[ordered(a, b)]);
      const auto near = nic_of(from, a), far = nic_of(to, b);
      if (near >= 0 && far >= 0) use(out_.nics[ordered(near, far)]);
      for (const auto& [nic, node] : {std::pair(near, a), std::pair(far, b)})
        if (nic < 0) unresolved_.insert(node);
      for (const auto nic : {near, far})
        if (const auto cable = out_.cables.find(nic); cable != out_.cables.end()) use(cable->second);
      const std::string &x = places_.leaf_of(from), &y = places_.leaf_of(to);
      off_switches_ = off_switches_ || x.empty() || y.empty();
      if (!x.empty() && !y.empty() && x != y) use(out_.switches[ordered(x, y)]);
    }
  }

  void count_rails() {
    const auto own = [&](std::int32_t row) { return last_part(j_.entities.name(row)); };
    out_.along_rails = static_cast<std::size_t>(std::ranges::count_if(
        out_.nics, [&](const auto& n) { return own(n.first.first) == own(n.first.second); }));
  }

  /// Where a node has several NICs, those that moved something meanwhile.
  void add_counters() {
    std::map<std::string, bool> sends;  // whether a case is one of messages
    for (const auto& c : j_.results.cases) sends[c.path()] = c.find("payload") != nullptr && c.kind == "link";
    std::map<std::int32_t, LinkUse> moved;
    std::set<std::int32_t> readable;
    for (const auto& row : j_.results.counters) {
      if (row.counter != "tx_bytes" && row.counter != "rx_bytes") continue;
      if (!std::isnan(row.before)) readable.insert(row.entity);
      const double delta = row.after - row.before;
      const auto at = sends.find(row.case_path);
      if (!(delta > 0) || at == sends.end() || !at->second) continue;
      LinkUse& use = moved[row.entity];
      use.bytes += delta;
      use.cases.insert(base_name(row.case_path));
    }
    for (auto& [nic, cable] : out_.cables) {
      const auto it = moved.find(nic);
      if (cable.bytes == 0 && it != moved.end() && it->second.bytes >= least_moved) cable = it->second;
      if (cable.bytes == 0)
        cable.known = out_.any() && (!unresolved_.contains(j_.entities.node(nic)) || readable.contains(nic));
    }
    for (auto& [pair, use] : out_.switches)
      if (use.bytes == 0) use.known = out_.any() && !off_switches_;
  }

 private:
  /// Less is what a kernel says to its neighbours anyway.
  static constexpr double least_moved = 1024 * 1024;

  std::int32_t nic_of(std::int32_t end, std::int32_t node) const {
    return j_.entities.kind(end) == "nic" ? end : places_.only_nic(node);
  }

  const Judgement& j_;
  network::Places places_;
  LinkCoverage& out_;
  std::set<std::int32_t> unresolved_;  ///< nodes with messages over one of several NICs
  bool off_switches_ = false;          ///< some message between switches that are not known
};

}  // namespace

LinkCoverage link_coverage(const results::Results& results) {
  LinkCoverage coverage;
  const Options options;
  const Judgement j(results, options);
  Collector collector(j, coverage);
  collector.possible();
  for (const auto& c : results.cases) collector.add(c);
  collector.count_rails();
  collector.add_counters();
  return coverage;
}

}  // namespace assay::verdict
