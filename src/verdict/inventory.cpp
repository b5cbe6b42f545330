// SPDX-License-Identifier: Apache-2.0
// Nodes against the majority of their table, PCIe links against their capability, NICs against those of the
// same name.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "results/described.hpp"
#include "results/inventory_names.hpp"
#include "verdict/constants.hpp"
#include "verdict/inventory_parts.hpp"

namespace assay::verdict {
namespace {

using results::InventoryTable;
namespace column = results::inventory;

/// Numbers of which less means that a part is gone, rather than set differently.
bool is_amount(const std::string& column) {
  static const std::set<std::string> amounts = {"sockets",      "cores",   "pus",      column::memory_bytes,
                                                "numa_domains", "dimms",   "nics",     "nics_up",
                                                "gpus",         "devices", "pci_links"};
  return amounts.contains(column);
}

/// Name of a part below its node: node07/eth0 -> eth0.
std::string part_name(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

/// A NIC that is down while its namesakes on most other nodes are up.
void judge_nic_states(Judgement& j, const InventoryTable& table) {
  const auto* state = text_column(table, {"state"});
  if (state == nullptr) return;
  struct NicStates {
    std::vector<std::int32_t> up;
    std::vector<std::size_t> down;  ///< rows of the table
  };
  std::map<std::string, NicStates> nics;
  for (std::size_t i = 0; i < table.entity.size(); ++i) {
    if ((*state)[i].empty()) continue;  // nobody could read it
    auto& t = nics[part_name(j.entities.name(table.entity[i]))];
    if ((*state)[i] == "up" || (*state)[i] == "unknown")
      t.up.push_back(table.entity[i]);
    else
      t.down.push_back(i);
  }
  for (const auto& [name, t] : nics) {
    const std::size_t total = t.up.size() + t.down.size();
    const bool majority = total >= constants::majority_min && 2 * t.up.size() > total;
    if (t.down.empty() || t.up.empty() || (!majority && total != 2)) continue;
    for (const auto i : t.down) {
      const auto row = table.entity[i];
      auto f = j.about(row, majority ? "FAIL" : "WARN", "fact", majority ? "missing" : "mismatch");
      f.suite = results::inventory_stage;
      f.metric = "state";
      f.controls = static_cast<std::int64_t>(t.up.size());
      f.action = "TRIAGE";
      f.evidence = "/inventory/nic/state";
      f.text = f.name + " is " + (*state)[i] + ", " + name + " is up on " + std::to_string(t.up.size()) +
               " other node" + (t.up.size() == 1 ? "" : "s");
      j.add(std::move(f), {row});
    }
  }
}

std::string gbit(double bytes_per_s) {
  char text[32];
  std::snprintf(text, sizeof text, "%g Gbit/s", bytes_per_s * 8e-9);
  return text;
}

/// A NIC that runs at a lower rate than most of its namesakes: a bad cable or lane, or a port that negotiated
/// less. That all of them run below what they can is a choice of the site, so it is noted only.
void judge_nic_rates(Judgement& j, const InventoryTable& table) {
  const auto* state = text_column(table, {"state"});
  const auto *rate = number_column(table, {results::inventory::rate}),
             *most = number_column(table, {"max_rate_bytes_per_s"});
  if (rate == nullptr) return;
  const auto *kind = text_column(table, {"kind"}), *driver = text_column(table, {"driver"});
  // The same name on another adapter is no peer: interfaces are named by their slots.
  using NicKind = std::tuple<std::string, std::string, std::string, double>;
  const auto kind_of = [&](std::size_t i) {
    return NicKind(part_name(j.entities.name(table.entity[i])), kind == nullptr ? "" : (*kind)[i],
                   driver == nullptr ? "" : (*driver)[i], most != nullptr && (*most)[i] > 0 ? (*most)[i] : 0);
  };
  std::map<NicKind, std::vector<std::size_t>> nics;
  for (std::size_t i = 0; i < table.entity.size(); ++i)
    if ((*rate)[i] > 0 && (state == nullptr || (*state)[i] == "up")) nics[kind_of(i)].push_back(i);
  const auto add = [&](std::size_t i, const char* severity, double reference,
                       const std::string& why) -> results::Finding& {
    auto f = j.about(table.entity[i], severity, "fact", "slow");
    f.suite = results::inventory_stage;
    f.metric = "rate";
    f.unit = "B/s";
    f.better = "higher";
    f.value = (*rate)[i];
    f.reference = reference;
    f.deficit = 1 - (*rate)[i] / reference;
    f.action = "TRIAGE";
    f.evidence = "/inventory/nic/" + std::string(results::inventory::rate);
    f.text = f.name + " runs at " + gbit((*rate)[i]) + ", " + why;
    j.add(std::move(f), {table.entity[i]});
    return j.found.back().finding;
  };
  std::vector<std::size_t> below;  // their own capability, as their namesakes are
  for (const auto& [nic_kind, of] : nics) {
    const std::string& name = std::get<0>(nic_kind);
    std::map<double, std::size_t> count;
    for (const auto i : of) ++count[(*rate)[i]];
    const auto usual = std::max_element(count.begin(), count.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    const bool majority = of.size() >= constants::majority_min && 2 * usual->second > of.size();
    for (const auto i : of) {
      if (majority && (*rate)[i] < constants::nic_rate_share * usual->first)
        add(i, "FAIL", usual->first,
            name + " at " + gbit(usual->first) + " on " + std::to_string(usual->second) + " other nodes");
      else if (most != nullptr && (*most)[i] > 0 && (*rate)[i] < constants::nic_rate_share * (*most)[i])
        below.push_back(i);
    }
  }
  if (below.empty()) return;
  const auto i = below.front();
  auto& f = add(i, "INFO", (*most)[i], "and supports " + gbit((*most)[i]));
  if (below.size() == 1) return;
  for (const auto b : below) f.members.push_back(j.entities.name(table.entity[b]));
  f.text += "; so do " + std::to_string(below.size() - 1) + " more";
}

bool contains_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* w) { return text.find(w) != std::string::npos; });
}

/// Width or speed below what the part can do.
struct Degraded {
  std::size_t i;
  bool width;
  double now, best;
};

void report_link(Judgement& j, const InventoryTable& table, const Degraded& d, const std::string& what) {
  auto f = j.about(table.entity[d.i], "FAIL", "fact", "mismatch");
  f.suite = results::inventory_stage;
  f.metric = d.width ? column::link_width : column::link_speed;
  f.unit = d.width ? "count" : "1";
  f.value = d.now;
  f.reference = d.best;
  f.reference_kind = "physical";
  f.better = "higher";
  f.deficit = deficit_of(d.now, d.best, true);
  f.part = what;
  f.action = "TRIAGE";
  f.evidence = "/inventory/pci";
  f.text = f.name + ": PCIe link of " + what + (d.width ? " is x" : " runs at ") + number_text(d.now) +
           (d.width ? " of x" : " of ") + number_text(d.best) + (d.width ? "" : " GT/s");
  j.add(std::move(f), {table.entity[d.i]});
}

void judge_pcie(Judgement& j, const InventoryTable& table) {
  const auto* cls = text_column(table, {"device_class"});
  const auto* label = text_column(table, {"address_info"});
  const auto* speed = number_column(table, {column::link_speed});
  const auto* best_speed = number_column(table, {column::max_link_speed});
  const auto* width = number_column(table, {column::link_width});
  const auto* best_width = number_column(table, {column::max_link_width});
  if (cls == nullptr) return;
  std::map<std::int32_t, bool> virtual_nodes;
  for (std::size_t i = 0; i < table.entity.size(); ++i) {
    const bool gpu = contains_any((*cls)[i], {"gpu", "display", "accelerator"});
    if (!gpu && !contains_any((*cls)[i], {"network", "nvme"})) continue;
    const auto node = j.entities.node(table.entity[i]);
    const auto [it, fresh] = virtual_nodes.try_emplace(node, false);
    if (fresh) it->second = is_virtual_node(j, node);
    if (it->second) continue;
    const std::string what = label == nullptr ? (*cls)[i] : (*label)[i];
    const auto below = [&](const auto* now, const auto* best) {
      // A width of zero is a link that is not up, or a bridge that does not tell.
      return now != nullptr && best != nullptr && (*now)[i] > 0 && (*now)[i] < (*best)[i];
    };
    if (below(width, best_width)) report_link(j, table, {i, true, (*width)[i], (*best_width)[i]}, what);
    // A healthy GPU slows its link down while it is idle; judge_gpus judges what it reached when busy.
    if (!gpu && below(speed, best_speed))
      report_link(j, table, {i, false, (*speed)[i], (*best_speed)[i]}, what);
  }
}

}  // namespace

void judge_inventory(Judgement& j) {
  judge_gpus(j);
  const auto it = j.results.inventory.find("node");
  if (it == j.results.inventory.end()) return;
  const auto& table = it->second;
  const Majority nodes{"node", "nodes", is_amount};
  for (const auto& [column, values] : table.text) {
    if (!is_identity(column) && values.size() == table.entity.size())
      judge_column(j, nodes, column, table.entity, values);
  }
  for (const auto& [column, values] : table.number) {
    if (!is_identity(column) && values.size() == table.entity.size())
      judge_column(j, nodes, column, table.entity, values);
  }
}

void judge_links(Judgement& j) {
  for (const auto& [kind, table] : j.results.inventory) {
    if (kind == "nic") {
      judge_nic_states(j, table);
      judge_nic_rates(j, table);
    }
    if (kind == "pci") judge_pcie(j, table);
  }
}

}  // namespace assay::verdict
