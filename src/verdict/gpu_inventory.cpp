// SPDX-License-Identifier: Apache-2.0
// GPUs against the majority of their model, and their PCIe links against what they can do.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "results/described.hpp"
#include "results/inventory_names.hpp"
#include "verdict/inventory_parts.hpp"

namespace assay::verdict {
namespace {

using results::InventoryTable;
namespace column = results::inventory;

/// Columns of the host's devices, and those that are held against what the GPU itself can do.
bool is_compared(const std::string& name) {
  static const std::set<std::string> left_out = {"model", "threads", "shares_cpus", column::device_kind,
                                                 column::gpu_link_width};
  return !is_identity(name) && !left_out.contains(name);
}

bool is_gpu_amount(const std::string& name) {
  static const std::set<std::string> amounts = {"memory_bytes", column::nvlinks, column::nvlinks_up,
                                                column::gpu_max_link_width, column::gpu_max_link_generation};
  return amounts.contains(name);
}

/// Values of some rows of a column, with the rows of /entities.
template <typename Value>
void judge_among(Judgement& j, const std::string& name, const InventoryTable& table,
                 const std::vector<std::size_t>& rows, const std::vector<Value>& values) {
  std::vector<std::int32_t> entities;
  std::vector<Value> told;
  for (const auto row : rows) {
    if (row >= values.size()) continue;
    entities.push_back(table.entity[row]);
    told.push_back(values[row]);
  }
  const Majority gpus{"device", "GPUs", is_gpu_amount};
  judge_column(j, gpus, name, entities, told);
}

/// Where /inventory/pci has the GPU's link it is judged there.
std::set<std::int32_t> links_judged(const Judgement& j) {
  const auto it = j.results.inventory.find("pci");
  if (it == j.results.inventory.end()) return {};
  return {it->second.entity.begin(), it->second.entity.end()};
}

void judge_width(Judgement& j, const InventoryTable& table, const std::vector<std::size_t>& rows) {
  const auto* width = number_column(table, {column::gpu_link_width});
  const auto* best = number_column(table, {column::gpu_max_link_width});
  if (width == nullptr || best == nullptr) return;
  const auto judged = links_judged(j);
  for (const auto row : rows) {
    const auto entity = table.entity[row];
    if (judged.contains(entity) || is_virtual_node(j, j.entities.node(entity)) || !((*width)[row] > 0) ||
        !((*width)[row] < (*best)[row]))
      continue;
    auto f = j.about(entity, "FAIL", "fact", "mismatch");
    f.suite = results::inventory_stage;
    f.metric = column::gpu_link_width;
    f.unit = "count";
    f.better = "higher";
    f.value = (*width)[row];
    f.reference = (*best)[row];
    f.reference_kind = "physical";
    f.deficit = deficit_of((*width)[row], (*best)[row], true);
    f.action = "TRIAGE";
    f.evidence = "/inventory/device";
    f.text = f.name + ": PCIe link is x" + number_text((*width)[row]) + " of x" + number_text((*best)[row]);
    j.add(std::move(f), {entity});
  }
}

/// What a link reached while its GPU was busy: a resting one saves power.
void judge_generation(Judgement& j, const InventoryTable& table, const std::vector<std::size_t>& rows) {
  constexpr double busy = 0.5;
  const auto* best = number_column(table, {column::gpu_max_link_generation});
  if (best == nullptr) return;
  std::map<std::int32_t, double> highest;
  const auto& told = j.results.telemetry;
  const auto generation = told.number.find("pcie_generation"), load = told.number.find("utilisation");
  if (generation == told.number.end() || load == told.number.end()) return;
  for (std::size_t i = 0; i < told.t.size(); ++i)
    if (load->second[i] >= busy && generation->second[i] > 0)
      highest[told.entity[i]] = std::max(highest[told.entity[i]], generation->second[i]);
  for (const auto row : rows) {
    const auto entity = table.entity[row];
    const auto reached = highest.find(entity);
    if (reached == highest.end() || !(reached->second < (*best)[row]) ||
        is_virtual_node(j, j.entities.node(entity)))
      continue;
    auto f = j.about(entity, "WARN", "fact", "mismatch");
    f.suite = results::inventory_stage;
    f.metric = "pcie_generation";
    f.unit = "1";
    f.better = "higher";
    f.value = reached->second;
    f.reference = (*best)[row];
    f.reference_kind = "physical";
    f.action = "TRIAGE";
    f.evidence = "/telemetry/samples";
    f.text = f.name + ": PCIe link of generation " + number_text(reached->second) + " of " +
             number_text((*best)[row]) + ", even when busy";
    j.add(std::move(f), {entity});
  }
}

struct State {
  const char *column, *text;  ///< a text that ends in " *" stands for all that begin so
  const char *severity, *action, *meaning;
};

/// What the driver says of a GPU by itself, with the words of the inventory
/// (src/telemetry/nvml_describe.cpp).
constexpr State states[] = {
    {column::recovery_action, "reset", "FAIL", "RESET", "the driver requests a GPU reset"},
    {column::recovery_action, "reboot", "FAIL", "REBOOT", "the driver requests a node reboot"},
    {column::recovery_action, "drain peer traffic", "WARN", "RESET",
     "the driver requests a drain of peer-to-peer GPU traffic"},
    {column::recovery_action, "drain and reset", "WARN", "RESET",
     "the GPU runs at reduced capacity until it is drained and reset"},
    {column::sram_threshold, "exceeded", "FAIL", "REPLACE",
     "uncorrectable errors of on-chip memory exceed the threshold of replacement"},
    {column::fabric, "not started", "WARN", "TRIAGE",
     "is not registered with the NVLink switches: not started"},
    {column::fabric, "in progress", "WARN", "TRIAGE",
     "is not registered with the NVLink switches: in progress"},
    {column::fabric, "failed *", "FAIL", "TRIAGE", "registration with the NVLink switches failed"},
    {column::fabric_trouble, "*", "WARN", "TRIAGE", "the NVLink fabric reports"},
};

bool is_state(const State& state, const std::string& text) {
  const std::string_view wanted = state.text;
  if (!wanted.ends_with('*')) return text == wanted;
  return !text.empty() && std::string_view(text).starts_with(wanted.substr(0, wanted.size() - 1));
}

void judge_states(Judgement& j, const InventoryTable& table, const std::vector<std::size_t>& rows) {
  for (const State& state : states) {
    const auto* texts = text_column(table, {state.column});
    for (const auto row : rows) {
      if (texts == nullptr || row >= texts->size() || !is_state(state, (*texts)[row])) continue;
      auto f = j.about(table.entity[row], state.severity, "fact", "counter");
      f.suite = results::inventory_stage;
      f.metric = state.column;
      f.action = state.action;
      f.evidence = std::string("/inventory/device/") + state.column;
      const bool told = std::string_view(state.text).ends_with('*');
      f.text = f.name + ": " + state.meaning + (told ? ": " + (*texts)[row] : "");
      j.add(std::move(f), {table.entity[row]});
    }
  }
}

}  // namespace

void judge_gpus(Judgement& j) {
  const auto it = j.results.inventory.find("device");
  if (it == j.results.inventory.end()) return;
  const InventoryTable& table = it->second;
  const auto* kind = text_column(table, {column::device_kind});
  if (kind == nullptr) return;
  std::vector<std::size_t> all;
  for (std::size_t row = 0; row < kind->size(); ++row)
    if ((*kind)[row] == column::gpu) all.push_back(row);
  std::map<std::string, std::vector<std::size_t>> by_model;
  if (const auto* model = text_column(table, {"model"})) {
    judge_among(j, "model", table, all, *model);
    for (const auto row : all) by_model[(*model)[row]].push_back(row);
  } else {
    by_model[""] = all;
  }
  for (const auto& [model, rows] : by_model) {
    for (const auto& [name, values] : table.text)
      if (is_compared(name)) judge_among(j, name, table, rows, values);
    for (const auto& [name, values] : table.number)
      if (is_compared(name)) judge_among(j, name, table, rows, values);
  }
  judge_width(j, table, all);
  judge_generation(j, table, all);
  judge_states(j, table, all);
}

}  // namespace assay::verdict
