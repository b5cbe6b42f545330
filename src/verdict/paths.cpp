// SPDX-License-Identifier: Apache-2.0
// Which NIC carried the messages: bytes that ranks sent to other nodes against the bytes that NICs moved in
// the same cases.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/units.hpp"
#include "results/inventory_names.hpp"
#include "verdict/counter_totals.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// Below this much payload a NIC's other traffic and late counters could mislead.
constexpr double least_payload = 16.0 * 1024 * 1024;
/// A NIC moves what it is given and headers besides; less than this part of it went another way.
constexpr double least_moved = 0.95;
/// Part of a node's bytes that one of several equal NICs moves when the others are as good as idle.
constexpr double nearly_all = 0.9;

struct Nic {
  std::string kind;  ///< ethernet|infiniband|roce; empty where the inventory does not list it
  double rate = results::not_taken;
  bool up = true;
};

/// What one node sent and its NICs moved, over cases of which the counters of all its NICs are known.
struct Traffic {
  double sent = 0;
  std::map<std::int32_t, double> moved;  ///< by NIC
  std::set<std::int32_t> senders;        ///< devices
  std::string worst;                     ///< case of which most bytes were not moved
  double missing = 0;                    ///< there
};

/// What was sent over one NIC alone, and what it and the node's others moved.
struct Alone {
  double sent = 0;
  std::map<std::int32_t, double> moved;
};

/// One thing wrong on one node.
struct Stray {
  std::int32_t row = -1;
  double value = 0, reference = 0;
  std::string text;
};

/// What NICs sent by their own counters. Cases hold only the rows of those that moved, so that a NIC known
/// from any case sent nothing in those that do not mention it.
class Moved {
 public:
  explicit Moved(const Judgement& j) {
    const PassingInterfaces passing(j);
    for (const auto& row : j.results.counters) {
      if (row.counter != "tx_bytes" || j.entities.kind(row.entity) != "nic") continue;
      const double delta = row.after - row.before;  // NaN where one of them is missing
      if (std::isnan(delta) && passing.contains(row.entity)) continue;
      const auto node = j.entities.node(row.entity);
      if (std::isnan(row.before) && std::isnan(row.after)) unreadable_.insert(row.entity);
      by_case_[{row.case_path, node}][row.entity] = delta >= 0 ? delta : results::not_taken;
      nics_[node].insert(row.entity);
    }
  }
  /// Of all NICs of a node; NaN where it cannot be told; empty where no counter of the node is known.
  std::map<std::int32_t, double> in(const std::string& path, std::int32_t node) const {
    std::map<std::int32_t, double> moved;
    const auto nics = nics_.find(node);
    if (nics == nics_.end()) return moved;
    if (const auto rows = by_case_.find({path, node}); rows != by_case_.end()) moved = rows->second;
    for (const auto nic : nics->second)
      moved.try_emplace(nic, unreadable_.contains(nic) ? results::not_taken : 0.0);
    return moved;
  }

 private:
  std::map<std::pair<std::string, std::int32_t>, std::map<std::int32_t, double>> by_case_;  ///< and node
  std::map<std::int32_t, std::set<std::int32_t>> nics_;                                     ///< by node
  std::set<std::int32_t> unreadable_;  ///< counters that hold no number; they have one row in the run
};

std::string bytes_text(double bytes) { return format_quantity(bytes, "B"); }

std::map<std::int32_t, Nic> listed_nics(const Judgement& j) {
  std::map<std::int32_t, Nic> nics;
  const auto it = j.results.inventory.find("nic");
  if (it == j.results.inventory.end()) return nics;
  const auto& table = it->second;
  const auto* kind = text_column(table, {"kind"});
  const auto* state = text_column(table, {"state"});
  const auto* rate = number_column(table, {results::inventory::rate});
  for (std::size_t i = 0; i < table.entity.size(); ++i) {
    Nic& nic = nics[table.entity[i]];
    if (kind != nullptr) nic.kind = (*kind)[i];
    if (rate != nullptr) nic.rate = (*rate)[i];
    nic.up = state == nullptr || (*state)[i] == "up";
  }
  return nics;
}

/// Whether what carried the messages uses ports and interfaces with counters that are read here: sockets,
/// verbs and UCX. Not so the adapters behind libfabric, PSM and Portals (Slingshot, EFA), whose interface in
/// /sys/class/net counts only the kernel's share.
bool shows_in_counters(const results::CaseData& c) {
  const auto it = c.parameters.find("path");
  if (it == c.parameters.end() || !it->is_string()) return false;
  const std::string path = it->get<std::string>();
  return path.find("cm/") == std::string::npos && path.find("requested:") == std::string::npos &&
         path != "mpi";
}

bool is_fabric(const Nic& nic) { return nic.kind == "infiniband" || nic.kind == "roce"; }

class Paths {
 public:
  explicit Paths(Judgement& j) : j_(j), nics_(listed_nics(j)), riding_(riding_interfaces(j)) {
    const Moved moved(j);
    for (const auto& c : j.results.cases) {
      const auto* payload = c.find("payload");
      if (payload != nullptr && payload->values.size() == c.entities() && shows_in_counters(c)) {
        if (suite_.empty()) suite_ = c.suite;
        add(c, *payload, moved);
      }
    }
  }

  void judge() {
    for (const auto& [nic, alone] : alone_) judge_alone(nic, alone);
    for (const auto& [node, traffic] : nodes_)
      if (traffic.sent >= least_payload) judge_node(node, traffic);
    for (auto& [what, strays] : found_) report(what, strays);
  }

 private:
  void add(const results::CaseData& c, const results::Metric& payload, const Moved& moved) {
    std::map<std::int32_t, double> by_nic, by_node;
    std::map<std::int32_t, std::set<std::int32_t>> senders;
    const auto sent = payload.values.held();
    for (std::size_t r = 0; r < c.entities(); ++r) {
      if (r >= c.source.size() || r >= c.destination.size() || !(sent[r] > 0)) continue;
      const auto from = c.source[r], node = j_.entities.node(from);
      if (node < 0 || node == j_.entities.node(c.destination[r])) continue;
      if (j_.entities.kind(from) == "nic") {
        by_nic[from] += sent[r];
      } else {
        by_node[node] += sent[r];
        senders[node].insert(from);
      }
    }
    const auto readable = [](const std::map<std::int32_t, double>& nics) {
      return !nics.empty() &&
             std::none_of(nics.begin(), nics.end(), [](const auto& nic) { return std::isnan(nic.second); });
    };
    for (const auto& [nic, bytes] : by_nic) {
      const auto nics = moved.in(c.path(), j_.entities.node(nic));
      if (!readable(nics) || !nics.contains(nic)) continue;
      alone_[nic].sent += bytes;
      for (const auto& [other, moved_by] : nics) alone_[nic].moved[other] += moved_by;
    }
    for (const auto& [node, bytes] : by_node) {
      const auto nics = moved.in(c.path(), node);
      if (!readable(nics)) continue;
      Traffic& t = nodes_[node];
      t.sent += bytes;
      double missing = bytes;
      for (const auto& [nic, moved_by] : nics) {
        t.moved[nic] += moved_by;
        missing -= moved_by;
      }
      if (missing > t.missing) std::tie(t.missing, t.worst) = std::tuple(missing, c.path());
      t.senders.merge(senders[node]);
    }
  }

  void judge_alone(std::int32_t nic, const Alone& alone) {
    const double through = alone.moved.at(nic);
    if (alone.sent < least_payload || through >= least_moved * alone.sent) return;
    std::string text = bytes_text(alone.sent) + " were sent over " + j_.entities.name(nic) +
                       " alone, which moved " + bytes_text(through);
    const auto most = std::max_element(alone.moved.begin(), alone.moved.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->first != nic && most->second >= alone.sent / 2)
      text += "; " + j_.entities.name(most->first) + " moved " + bytes_text(most->second);
    found_["astray"].push_back({nic, through, alone.sent, text});
  }

  void judge_node(std::int32_t node, const Traffic& t) {
    const std::string name = j_.entities.name(node);
    double all = 0, fabric = 0;
    std::int32_t most = -1;
    bool has_fabric = false;
    bool has_listed = false;
    for (const auto& [row, nic] : nics_) {
      if (j_.entities.node(row) != node) continue;
      has_listed = true;
      has_fabric = has_fabric || (nic.up && is_fabric(nic));
    }
    for (const auto& [row, bytes] : t.moved) {
      const std::string interface = j_.entities.name(row);
      // What a port counts the interface that rides on it may count again, and what a NIC counts a bond or
      // bridge above it.
      if (riding_.contains(interface) || ends_with(interface, "/lo")) continue;
      const auto listed = nics_.find(row);
      if (has_listed && listed == nics_.end()) continue;
      all += bytes;
      if (listed != nics_.end() && is_fabric(listed->second)) fabric += bytes;
      if (most < 0 || bytes > t.moved.at(most)) most = row;
    }
    const std::string sent = bytes_text(t.sent) + " sent to other nodes";
    if (most < 0) return;
    if (all < least_moved * t.sent) {
      found_["beside"].push_back({node, all, t.sent,
                                  name + ": of " + sent + " its NICs moved " + bytes_text(all) +
                                      (t.worst.empty() ? "" : ", missing most in " + t.worst)});
    } else if (has_fabric && fabric < least_moved * t.sent / 2) {
      found_["fallback"].push_back({node, fabric, t.sent,
                                    name + ": of " + sent + " InfiniBand and RoCE ports moved " +
                                        bytes_text(fabric) + ", " + j_.entities.name(most) + " " +
                                        bytes_text(t.moved.at(most))});
    } else {
      judge_share(node, t, all, most);
    }
  }

  /// One of several NICs of a kind that carries what all ranks of the node send.
  void judge_share(std::int32_t node, const Traffic& t, double all, std::int32_t most) {
    const auto carrier = nics_.find(most);
    if (carrier == nics_.end() || t.senders.size() < 2 || t.moved.at(most) < nearly_all * all) return;
    std::vector<std::string> idle;
    for (const auto& [row, nic] : nics_)
      if (row != most && j_.entities.node(row) == node && nic.up && nic.kind == carrier->second.kind &&
          nic.rate >= carrier->second.rate && t.moved.contains(row))
        idle.push_back(j_.entities.name(row));
    if (idle.empty()) return;
    std::string text = j_.entities.name(most) + " carried " + percent(t.moved.at(most) / all) +
                       " of the bytes of " + std::to_string(t.senders.size()) + " ranks; nearly idle:";
    for (const auto& name : idle) text += " " + name;
    // A second Ethernet interface often has another purpose.
    found_[is_fabric(carrier->second) ? "one-nic" : "one-interface"].push_back(
        {most, t.moved.at(most) / all, 1.0 / static_cast<double>(idle.size() + 1), text});
  }

  /// One finding however many nodes it is about: a launch is wrong everywhere alike.
  void report(const std::string& what, const std::vector<Stray>& strays) {
    const Stray& first = strays.front();
    const bool several = strays.size() > 1;
    auto f =
        j_.about(several ? -1 : first.row, what == "one-interface" ? "INFO" : "WARN", "fact", "mismatch");
    f.suite = suite_;
    f.metric = "path";
    f.unit = what.starts_with("one") ? "1" : "B";
    f.value = first.value;
    f.reference = first.reference;
    f.action = "CONFIG";
    f.evidence = "/counters";
    f.text = first.text;
    std::vector<std::int32_t> rows;
    for (const Stray& s : strays) {
      rows.push_back(s.row);
      if (several) f.members.push_back(j_.entities.name(s.row));
    }
    if (several) f.text += "; " + std::to_string(strays.size()) + " parts in total";
    j_.add(std::move(f), rows);
  }

  Judgement& j_;
  std::string suite_;  ///< that sent
  std::map<std::int32_t, Nic> nics_;
  std::set<std::string> riding_;
  std::map<std::int32_t, Traffic> nodes_;
  std::map<std::int32_t, Alone> alone_;
  std::map<std::string, std::vector<Stray>> found_;
};

}  // namespace

void judge_paths(Judgement& j) { Paths(j).judge(); }

}  // namespace assay::verdict
