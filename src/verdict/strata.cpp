// SPDX-License-Identifier: Apache-2.0
#include "verdict/strata.hpp"
#include "results/inventory_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/units.hpp"

namespace assay::verdict {
namespace {

/// Turns texts into an attribute; empty texts are "not recorded".
class Builder {
 public:
  Builder(const std::vector<std::int32_t>& rows, std::vector<Attribute>& out) : rows_(rows), out_(out) {}

  void add(const std::string& name, const std::function<std::string(std::int32_t)>& text) {
    Attribute a;
    a.name = name;
    std::unordered_map<std::string, std::int32_t> known;
    std::size_t recorded = 0;
    for (const auto row : rows_) {
      const std::string value = text(row);
      if (value.empty()) {
        a.of.push_back(-1);
        continue;
      }
      ++recorded;
      const auto [it, fresh] = known.try_emplace(value, static_cast<std::int32_t>(a.values.size()));
      if (fresh) a.values.push_back(value);
      a.of.push_back(it->second);
    }
    // One value explains nothing, and neither does one that differs for (nearly) every part.
    if (a.values.size() >= 2 && 2 * a.values.size() <= recorded) out_.push_back(std::move(a));
  }

 private:
  const std::vector<std::int32_t>& rows_;
  std::vector<Attribute>& out_;
};

bool of_its_own(const std::string& column) {
  for (const char* part :
       {"_info", "serial", "uuid", "address", "cpus", "mask", "id", "guid", "mac", "name"}) {
    if (ends_with(column, part)) return true;
  }
  return false;
}

using Positions = std::unordered_map<std::int32_t, std::size_t>;

Positions positions_of(const results::InventoryTable& table) {
  Positions at;
  for (std::size_t i = 0; i < table.entity.size(); ++i) at.emplace(table.entity[i], i);
  return at;
}

void add_columns(Builder& builder, const results::InventoryTable& table, const std::string& prefix,
                 const std::function<std::int32_t(std::int32_t)>& subject) {
  const Positions at = positions_of(table);
  auto find = [&](std::int32_t row) {
    const auto it = at.find(subject(row));
    return it == at.end() ? table.entity.size() : it->second;
  };
  for (const auto& [name, column] : table.text) {
    if (of_its_own(name) && !is_place(name)) continue;
    builder.add(prefix + name, [&find, &column = column](std::int32_t row) {
      const auto i = find(row);
      return i < column.size() ? column[i] : std::string();
    });
  }
  for (const auto& [name, column] : table.number) {
    if (of_its_own(name)) continue;
    builder.add(prefix + name, [&find, &column = column](std::int32_t row) {
      const auto i = find(row);
      return i < column.size() && !std::isnan(column[i]) ? format_quantity(column[i], "") : std::string();
    });
  }
}

/// The ancestor of a kind, by name.
std::string above(const Judgement& j, std::int32_t row, const char* kind) {
  for (int step = 0; step < 8 && j.entities.valid(row); ++step, row = j.entities.parent(row)) {
    if (j.entities.kind(row) == kind) return j.entities.name(row);
  }
  return {};
}

}  // namespace

Strata::Strata(const Judgement& j) : j_(j), representative_(j.entities.size(), -1) {
  note("node", {"cpu_model"}, {});
  note("device", {"model"}, {});
  note("nic", {"driver"}, {results::inventory::rate});
  note("numa", {}, {"pus"});
  std::unordered_map<std::string, std::int32_t> first;
  for (std::size_t i = 0; i < j.entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    const int cores = j.entities.cores(row);
    if (cores > 0) labels_[row] += " x" + std::to_string(cores);
  }
  for (std::size_t i = 0; i < j.entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    representative_[i] = first.try_emplace(model(row), row).first->second;
  }
}

std::string Strata::of(const SeriesRow& row, const std::string& kind) const {
  if (kind == "link") {
    const bool inside = j_.entities.node(row.source) == j_.entities.node(row.destination);
    return (inside ? "in-node " : "across ") + model(row.source) + " > " + model(row.destination);
  }
  return model(row.entity);
}

void Strata::note(const char* kind, std::initializer_list<const char*> texts,
                  std::initializer_list<const char*> numbers) {
  const auto it = j_.results.inventory.find(kind);
  if (it == j_.results.inventory.end()) return;
  const auto* text = text_column(it->second, texts);
  const auto* number = number_column(it->second, numbers);
  for (std::size_t i = 0; i < it->second.entity.size(); ++i) {
    std::string& label = labels_[it->second.entity[i]];
    if (text != nullptr) label += (*text)[i];
    if (number != nullptr && !std::isnan((*number)[i])) label += " x" + format_quantity((*number)[i], "");
  }
}

std::string Strata::label(std::int32_t row) const {
  const auto it = labels_.find(row);
  return it == labels_.end() ? std::string() : it->second;
}

std::string Strata::model(std::int32_t row) const {
  const auto node = j_.entities.node(row);
  if (node == row || node < 0) return label(row);
  const std::string above = label(node), own = label(row);
  const bool apart =
      !above.empty() && !own.empty() && own.front() != ' ';  // " x16" goes with what stands before it
  return above + (apart ? ", " : "") + own;
}

bool is_place(const std::string& attribute) {
  static constexpr std::array places = {"rack",      "switch",  "leaf",     "pod",  "row", "chassis",
                                        "enclosure", "cabinet", "location", "room", "pdu"};
  const auto space = attribute.find_last_of(' ');
  std::string name = space == std::string::npos ? attribute : attribute.substr(space + 1);
  if (ends_with(name, "_info")) name.resize(name.size() - 5);
  return std::any_of(places.begin(), places.end(), [&](const char* place) { return name == place; });
}

std::vector<std::int32_t> slots_in_nodes(const EntityIndex& entities, const std::string& kind) {
  std::vector<std::int32_t> slots(entities.size(), -1);
  std::unordered_map<std::int32_t, std::int32_t> next;
  for (std::size_t i = 0; i < entities.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    if (entities.node(row) >= 0 && entities.kind(row) == kind) slots[i] = next[entities.node(row)]++;
  }
  return slots;
}

std::vector<Attribute> attributes_of(const Judgement& j, const std::vector<std::int32_t>& rows) {
  std::vector<Attribute> attributes;
  if (rows.empty()) return attributes;
  Builder builder(rows, attributes);
  const auto& inventory = j.results.inventory;
  const std::string kind = j.entities.kind(rows.front());
  if (const auto own = inventory.find(kind); own != inventory.end())
    add_columns(builder, own->second, kind == "node" ? "" : kind + " ", [](std::int32_t row) { return row; });
  if (const auto node = inventory.find("node"); node != inventory.end() && kind != "node")
    add_columns(builder, node->second, "node ", [&](std::int32_t row) { return j.entities.node(row); });
  // Where the parts of a node hang: the switches of its NICs, when they agree.
  if (const auto nic = inventory.find("nic"); nic != inventory.end() && kind != "nic") {
    if (const auto* leaf = text_column(nic->second, {"switch"}); leaf != nullptr) {
      std::unordered_map<std::int32_t, std::string> of_node;
      for (std::size_t i = 0; i < leaf->size(); ++i) {
        auto& text = of_node.try_emplace(j.entities.node(nic->second.entity[i]), (*leaf)[i]).first->second;
        if (text != (*leaf)[i]) text.clear();
      }
      builder.add("switch", [&](std::int32_t row) { return of_node[j.entities.node(row)]; });
    }
  }
  builder.add("rack", [&](std::int32_t row) { return above(j, row, "rack"); });
  const auto slots = slots_in_nodes(j.entities, kind);
  builder.add("slot", [&](std::int32_t row) {
    return kind == "node" ? std::string() : std::to_string(slots[static_cast<std::size_t>(row)]);
  });
  return attributes;
}

}  // namespace assay::verdict
