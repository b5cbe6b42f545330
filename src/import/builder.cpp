// SPDX-License-Identifier: Apache-2.0
#include "import/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "results/text.hpp"

namespace assay::imports {
namespace {

constexpr std::size_t longest_name = 200, most_samples = 100'000, most_entities = 20'000'000, most_named = 20;

void check_name(const std::string& what, const std::string& name, const TextPosition& place) {
  if (name.empty()) fail(place, what + " is empty");
  if (name.size() > longest_name)
    fail(place, what + " is longer than " + std::to_string(longest_name) + " characters");
  if (results::clean_text(name) != name) fail(place, what + " '" + name + "' is not UTF-8");
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x21 || u == 0x7f || c == '/' || c == '>' || c == ',')
      fail(place, what + " '" + name + "' holds a blank, a comma, '/', '>' or a control character");
  }
}

/// Attributes that say where a node stands differ between healthy nodes.
bool is_location(const std::string& name) {
  static const std::set<std::string> places = {"rack",    "switch",    "leaf",     "rail",     "pod",
                                               "row",     "slot",      "position", "location", "room",
                                               "chassis", "enclosure", "port"};
  return places.contains(name);
}

/// The column of each attribute. That of a place ends in _info, and another attribute may have that name.
std::map<std::string, std::string> columns_of(const std::string& kind,
                                              const std::set<std::string>& attributes) {
  std::map<std::string, std::string> columns;
  std::set<std::string> taken;
  for (const std::string& name : attributes)
    if (kind == "node" && is_location(name)) taken.insert(columns[name] = name + "_info");
  for (const std::string& name : attributes) {
    if (columns.contains(name)) continue;
    std::string column = name;
    while (taken.contains(column) || (column != name && attributes.contains(column))) column += "_info";
    taken.insert(columns[name] = column);
  }
  return columns;
}

}  // namespace

Builder::Builder(std::string tool) : tool_(std::move(tool)) {
  entities_.push_back({"cluster", "cluster", "path", "cluster", -1, -1});
}

std::string Builder::case_name(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool plain = (std::isalnum(u) != 0 && u < 0x80) || c == '.' || c == '_';
    const char next = plain ? static_cast<char>(std::tolower(u)) : '-';
    if (next == '-' && (out.empty() || out.back() == '-')) continue;
    out += next;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  // A suffix .pK or .cK would be taken for a repeat or a retest.
  std::replace(out.begin(), out.end(), '.', '_');
  // A case name has at most 80 characters, and .pK (6 digits) and .cK (2) follow.
  constexpr std::size_t most = 80 - 8 - 4, digits = 8;
  if (out.size() <= most) return out;
  // Long names must not become one.
  return out.substr(0, most - digits - 1) + fmt::format("-{:08x}", hash_text(out) & 0xffffffffU);
}

std::string Builder::case_name(const std::string& text, const TextPosition& place) {
  std::string name = case_name(text);
  const auto [it, fresh] = named_.try_emplace(name, text);
  if (!fresh && it->second != text)
    fail(place, fmt::format("'{}' and '{}' would both be named {}: rename one", it->second, text, name));
  return name;
}

std::int32_t Builder::node_row(const std::string& name, const TextPosition& place) {
  if (const auto it = known_.find("node " + name); it != known_.end()) return it->second;
  check_name("node", name, place);
  const auto row = static_cast<std::int32_t>(entities_.size());
  entities_.push_back({"node", name, "hostname", name, 0, -1});
  known_.emplace("node " + name, row);
  return row;
}

std::int32_t Builder::end_row(const std::string& node, const std::string& device, const TextPosition& place) {
  const bool number = !device.empty() && device.find_first_not_of("0123456789") == std::string::npos;
  const std::string part = number ? "device" + device : device;
  const std::string key = "device " + node + "/" + part;
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  const std::int32_t parent = node_row(node, place);
  check_name("device", part, place);
  if (entities_.size() >= most_entities) fail(place, "more entities than can be judged");
  const auto row = static_cast<std::int32_t>(entities_.size());
  entities_.push_back({"device", node + "/" + part, "path", node + "/" + part, parent, -1});
  known_.emplace(key, row);
  return row;
}

std::int32_t Builder::subject_row(const Subject& s, const TextPosition& place) {
  if (!s.link()) return s.device.empty() ? node_row(s.node, place) : end_row(s.node, s.device, place);
  // Links end at devices; a node that is named alone has one for its own traffic.
  const std::int32_t a = end_row(s.node, s.device.empty() ? "host" : s.device, place);
  const std::int32_t b = end_row(s.peer_node, s.peer_device.empty() ? "host" : s.peer_device, place);
  if (a == b) fail(place, "a link from " + entities_[static_cast<std::size_t>(a)].name + " to itself");
  const std::string name =
      entities_[static_cast<std::size_t>(a)].name + ">" + entities_[static_cast<std::size_t>(b)].name;
  const auto [it, fresh] = known_.try_emplace("link " + name, static_cast<std::int32_t>(entities_.size()));
  if (fresh) entities_.push_back({"link", name, "path", name, 0, -1});
  return it->second;
}

std::string Builder::key_of(const Sample& sample) {
  const std::string key = sample.suite + "/" + sample.name;
  return sample.retest > 0 ? key + ".c" + std::to_string(sample.retest) : key;
}

Builder::Case& Builder::case_for(const Sample& sample, const std::string& kind) {
  const auto [it, fresh] = case_of_.try_emplace(key_of(sample), cases_.size());
  if (fresh) {
    Case c;
    c.retest = sample.retest;
    c.place = sample.place;
    c.suite = sample.suite;
    c.name = sample.name;
    c.stage = sample.stage;
    c.bytes = sample.bytes;
    c.kind = kind;
    c.common_blocks = sample.common_blocks;
    c.metrics = sample.values;
    cases_.push_back(std::move(c));
  }
  Case& c = cases_[it->second];
  if (c.kind != kind)
    fail(sample.place, c.name + " was measured of a " + c.kind + " before, and here of a " + kind);
  bool same = c.metrics.size() == sample.values.size();
  for (std::size_t m = 0; same && m < c.metrics.size(); ++m) {
    const Value &a = c.metrics[m], &b = sample.values[m];
    same = a.name == b.name;
    if (a.unit != b.unit)
      fail(sample.place,
           fmt::format("{} of {} was in {} before, and is in {} here", b.name, c.name, a.unit, b.unit));
    if (a.better != b.better)
      fail(sample.place, fmt::format("{} of {} was better {} before, and is better {} here", b.name, c.name,
                                     results::to_string(a.better), results::to_string(b.better)));
  }
  if (!same) fail(sample.place, c.name + " has other values here than before");
  return c;
}

void Builder::add(const Sample& sample) {
  const std::int32_t entity = subject_row(sample.subject, sample.place);
  Case& c = case_for(sample, entities_[static_cast<std::size_t>(entity)].kind);
  const auto [it, fresh] = c.row_of.try_emplace(entity, c.rows.size());
  if (fresh) {
    Row row;
    row.entity = entity;
    if (sample.subject.link()) {
      const auto& s = sample.subject;
      row.source = end_row(s.node, s.device.empty() ? "host" : s.device, sample.place);
      row.destination = end_row(s.peer_node, s.peer_device.empty() ? "host" : s.peer_device, sample.place);
    }
    row.values.resize(c.metrics.size());
    c.rows.push_back(std::move(row));
  }
  Row& row = c.rows[it->second];
  if (row.cells.size() >= most_samples)
    fail(sample.place, fmt::format("more than {} samples of one entity", most_samples));
  const auto index = sample.index.value_or(static_cast<std::int64_t>(row.cells.size()));
  if (index < 0 || index > 2'000'000'000) fail(sample.place, fmt::format("sample {} is out of range", index));
  row.cells.push_back({static_cast<std::int32_t>(index), sample.block, sample.t});
  // Samples mostly come in order; others are told by a search.
  const auto known = [&](const Cell& cell) { return cell.sample == index; };
  const std::size_t last = row.cells.size() - 1;
  if (last > 0 && row.cells[last - 1].sample >= index &&
      std::any_of(row.cells.begin(), row.cells.end() - 1, known))
    fail(sample.place, fmt::format("duplicate sample {} of {} of {}", index, c.name,
                                   entities_[static_cast<std::size_t>(entity)].name));
  for (std::size_t m = 0; m < sample.values.size(); ++m) row.values[m].push_back(sample.values[m].value);
  ++samples_;
  dated_ += sample.dated ? 1 : 0;
  if (dated_ > 0 && dated_ != samples_) fail(sample.place, "some times are dates and others are not");
}

void Builder::count_missing(const Sample& sample) {
  ++missing_;
  without_value_.emplace(key_of(sample), subject_row(sample.subject, sample.place));
}

void Builder::add_empty(const TextPosition& place, const std::string& why, bool gap) {
  empty_.push_back({place, why, gap});
}

void Builder::attribute(const Subject& subject, const std::string& name, const std::string& value,
                        const TextPosition& place) {
  if (value.empty()) return;
  const std::int32_t row = subject_row(subject, place);
  const auto [it, fresh] = attributes_[row].try_emplace(name, value);
  if (!fresh && it->second != value)
    fail(place, fmt::format(
                    "{} of {} was '{}' before, and is '{}' here (a column that changes from sample to sample "
                    "carries its unit, as {}[K])",
                    name, entities_[static_cast<std::size_t>(row)].name, it->second, value, name));
}

void Builder::fail_case(const std::string& suite, const std::string& name, const std::string& reason) {
  if (const auto it = case_of_.find(suite + "/" + name); it != case_of_.end())
    cases_[it->second].failure = reason;
}

void Builder::set_stage(const std::string& suite, const std::string& name, const std::string& stage) {
  if (const auto it = case_of_.find(suite + "/" + name); it != case_of_.end())
    cases_[it->second].stage = stage;
}

std::map<std::string, results::InventoryTable> Builder::inventory() const {
  std::map<std::string, std::set<std::string>> names;  // by kind
  for (const auto& [row, values] : attributes_)
    for (const auto& [name, value] : values)
      names[entities_[static_cast<std::size_t>(row)].kind].insert(name);
  std::map<std::string, results::InventoryTable> tables;
  for (const auto& [kind, of_kind] : names) {
    const auto columns = columns_of(kind, of_kind);
    auto& table = tables[kind];
    for (std::size_t i = 0; i < entities_.size(); ++i) {
      if (entities_[i].kind != kind) continue;
      const auto row = static_cast<std::int32_t>(i);
      table.entity.push_back(row);
      const auto of = attributes_.find(row);
      for (const auto& [name, column] : columns) {
        std::string value;
        if (of != attributes_.end())
          if (const auto it = of->second.find(name); it != of->second.end()) value = it->second;
        table.text[column].push_back(value);
      }
    }
  }
  return tables;
}

/// Times count from the first sample, whatever they counted from. Dates tell when the run was.
void Builder::set_times(results::Results& r) {
  double first = HUGE_VAL, last = -HUGE_VAL;
  for (const Case& c : cases_)
    for (const Row& row : c.rows)
      for (const Cell& cell : row.cells) {
        first = std::min(first, cell.t);
        last = std::max(last, cell.t);
      }
  for (Case& c : cases_)
    for (Row& row : c.rows)
      for (Cell& cell : row.cells) cell.t -= first;
  r.info.started = dated_ > 0 ? iso_of(first) : utc_now_iso();
  r.info.ended = dated_ > 0 ? iso_of(last) : r.info.started;
}

results::Results Builder::finish(const std::vector<std::string>& files) {
  if (samples_ == 0 && !empty_.empty()) fail(empty_.front().place, empty_.front().why);
  if (samples_ == 0) fail({files.front(), 0}, "has no results");
  results::Results r;
  set_times(r);
  std::uint64_t identity = hash_text(tool_);
  for (const Case& c : cases_) {
    if (c.retest > 0 && !case_of_.contains(c.suite + "/" + c.name))
      fail(c.place, fmt::format("{} has retest {}, and no first measurement (retest 0)", c.name, c.retest));
    for (auto& data : data_of(c)) {
      results::PlanRow row;
      row.suite = data.suite;
      row.name = data.name;
      row.required = true;
      row.entities = static_cast<std::int64_t>(data.entities());
      row.checkers = results::no_checks;  // whatever measured it checked it, or did not
      // What confirms or clears is asked for by a verdict, not by a plan.
      if (c.retest == 0) r.plan.push_back(std::move(row));
      for (const double v : data.metrics.front().values.held()) {
        std::uint64_t bits = 0;
        static_assert(sizeof bits == sizeof v);
        std::copy_n(reinterpret_cast<const unsigned char*>(&v), sizeof v,
                    reinterpret_cast<unsigned char*>(&bits));
        identity = mix64(identity, bits);
      }
      r.cases.push_back(std::move(data));
    }
  }
  r.entities = entities_;
  r.inventory = inventory();
  r.info.run_id = fmt::format("imported-{:016x}", identity);
  r.info.state = "complete";
  r.info.assay_version = ASSAY_VERSION;
  r.info.level = "standard";
  r.info.plan_hash = fmt::format("{:016x}", identity);
  r.config["imported"] = {{"tool", tool_}, {"files", files}};
  r.environment.push_back({"", "imported", tool_});
  add_events(r, files.size());
  return r;
}

void Builder::add_events(results::Results& r, std::size_t files) const {
  const auto told = [&](const std::string& text, const char* kind = "imported", const char* finding = "") {
    r.events.push_back({0, -1, kind, text, finding});
  };
  const auto rows = [](std::size_t n) { return fmt::format("{} row{}", n, n == 1 ? "" : "s"); };
  told(fmt::format("{} sample{} of {} from {} file{}", samples_, samples_ == 1 ? "" : "s", tool_, files,
                   files == 1 ? "" : "s"));
  for (const std::string& text : incomplete_) told(text, "launch-inconclusive");
  for (const auto& [place, why, gap] : empty_) {
    const std::string text =
        (place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line)) + " " + why;
    if (gap)
      told(text + ": what it should hold was not measured", "launch-inconclusive", "uncovered");
    else
      told(text);
  }
  if (duplicates_ > 0) told(rows(duplicates_) + " word for word the same as before: counted once");
  if (missing_ > 0) told(rows(missing_) + " without a value (empty or N/A): left out");
  add_never_measured(r);
}

void Builder::add_never_measured(results::Results& r) const {
  std::map<std::int32_t, std::vector<std::string>> cases;  // by entity
  for (const auto& [key, entity] : without_value_) {
    const auto known = case_of_.find(key);
    if (known == case_of_.end() || !cases_[known->second].row_of.contains(entity))
      cases[entity].push_back(key);
  }
  const auto more = [](std::size_t n) { return n > 0 ? fmt::format(" and {} more", n) : ""; };
  const auto told = [&](std::int32_t entity, const std::string& text) {
    r.events.push_back({0, entity, "launch-inconclusive", text, "uncovered"});
  };
  std::size_t named = 0;
  for (const auto& [entity, keys] : cases) {
    if (++named > most_named) break;
    told(entity, fmt::format("no value of {} in {}{}", entities_[static_cast<std::size_t>(entity)].name,
                             keys.front(), more(keys.size() - 1)));
  }
  if (cases.size() > most_named)
    told(-1, fmt::format("no value of {} more parts", cases.size() - most_named));
}

}  // namespace assay::imports
