// SPDX-License-Identifier: Apache-2.0
// For other programs: JSON, JUnit XML, and a line per node; prometheus.cpp has the metrics.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/exit_code.hpp"
#include "report/layout.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"
#include "results/json_io.hpp"
#include "verdict/judgement.hpp"

namespace assay::report {
namespace {

using results::Results;
using results::VerdictData;

/// Text for XML attributes and content. Control characters are not allowed in XML 1.0, not even escaped.
std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&apos;"; break;
      case '\n': out += "&#10;"; break;
      case '\t': out += "&#9;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

std::string xml(const std::string& text) { return escape(valid_utf8(text)); }

const results::Entity* entity_of(const Results& results, std::int32_t row) {
  if (row < 0 || static_cast<std::size_t>(row) >= results.entities.size()) return nullptr;
  return &results.entities[static_cast<std::size_t>(row)];
}

/// The entity of a row; the nodes of a link, because links grow with the square of the nodes.
std::set<std::string> entities_of(const Results& results, const verdict::EntityIndex& index,
                                  const results::CaseData& c, std::size_t row) {
  if (c.kind != "link" || row >= c.source.size() || row >= c.destination.size())
    return {entity_name(results, c, row)};
  std::set<std::string> names;
  for (const std::int32_t end : {c.source[row], c.destination[row]})
    names.insert(entity_name(results, index.node(end) >= 0 ? index.node(end) : end));
  return names;
}

/// Which entity did what in each suite: worst case state, and the first reason for it.
struct Cell {
  results::CaseState state = results::CaseState::pass;
  std::string reason;
};

using Cells = std::map<std::string, std::map<std::string, Cell>>;

Cells cells_of(const Results& results) {
  const verdict::EntityIndex index(results.entities);
  Cells cells;
  for (const auto& c : results.cases) {
    auto& suite = cells[c.suite];
    std::set<std::string> names;
    for (std::size_t r = 0; r < c.entity.size(); ++r) names.merge(entities_of(results, index, c, r));
    if (names.empty()) names.insert("cluster");
    for (const auto& name : names) {
      auto& cell = suite[name];
      // A failed case is of the entities that its findings name, not all that took part.
      const auto state = c.state == results::CaseState::fail ? results::CaseState::pass : c.state;
      if (state <= cell.state) continue;
      cell.state = state;
      cell.reason = c.path() + (c.reason.empty() ? "" : ": " + c.reason);
    }
  }
  return cells;
}

/// What findings say of an entity in a suite.
struct Blame {
  const results::Finding* fail = nullptr;  ///< the first
  std::string fails, warnings;             ///< texts, as XML

  void add(const results::Finding& f) {
    const bool failed = f.severity == "FAIL";
    if (failed && fail == nullptr) fail = &f;
    (failed ? fails : warnings) += xml(f.text) + "&#10;";
  }
};

struct Sums {
  std::size_t failures = 0, errors = 0, skipped = 0;
};

/// The elements of a test case. Its warnings are part of a failure, since most readers show that alone.
std::string outcome_of(const Cell& cell, const Blame& blame, Sums& sums) {
  using results::CaseState;
  if (blame.fail != nullptr) {
    ++sums.failures;
    return fmt::format("<failure type=\"{}\" message=\"{}\">{}{}</failure>", xml(blame.fail->kind),
                       xml(blame.fail->text), blame.fails, blame.warnings);
  }
  std::string out;
  if (cell.state == CaseState::fail) {
    ++sums.failures;
    out = fmt::format("<failure type=\"strict\" message=\"{}\"/>", xml(cell.reason));
  } else if (cell.state == CaseState::error || cell.state == CaseState::incomplete) {
    ++sums.errors;
    out = fmt::format("<error message=\"{}\"/>", xml(cell.reason));
  } else if (cell.state == CaseState::skip) {
    ++sums.skipped;
    out = fmt::format("<skipped message=\"{}\"/>", xml(cell.reason));
  }
  return blame.warnings.empty() ? out : out + "<system-out>" + blame.warnings + "</system-out>";
}

}  // namespace

std::string verdict_json(const Results& results, const VerdictData& verdict) {
  Json json = results::verdict_to_json(verdict);
  json["run"] = Json{{"run_id", results.info.run_id},    {"started", results.info.started},
                     {"ended", results.info.ended},      {"level", results.info.level},
                     {"seed", results.info.seed},        {"assay_version", results.info.assay_version},
                     {"injected", results.info.injected}};
  // Rows mean nothing to a reader without the file: every entity is named.
  Json entities = Json::array();
  for (const auto& s : verdict.entities) {
    const auto* e = entity_of(results, s.entity);
    entities.push_back(Json{{"name", entity_name(results, s.entity)},
                            {"kind", e == nullptr ? "cluster" : e->kind},
                            {"id", e == nullptr ? "" : e->id},
                            {"state", s.state},
                            {"reason", s.reason}});
  }
  json["entities"] = std::move(entities);
  // The values that the verdict was made with are for repeating it, and as many as there are parts.
  for (const auto& [key, values] : {std::pair("baseline", "values"), std::pair("history", "series"),
                                    std::pair("history", "node_totals")}) {
    auto& inputs = json["inputs"];
    if (inputs.is_object() && inputs.contains(key) && inputs[key].is_object()) inputs[key].erase(values);
  }
  return results::dump(json) + "\n";
}

std::string verdict_junit(const Results& results, const VerdictData& verdict) {
  auto cells = cells_of(results);
  std::map<std::string, std::map<std::string, Blame>> findings;
  for (const auto& f : verdict.findings) {
    if (f.severity == "INFO") continue;
    const std::string suite = f.suite.empty() ? "run" : f.suite;
    cells[suite].try_emplace(f.name);
    findings[suite][f.name].add(f);
    for (const auto& member : f.members)
      if (member != f.name && cells[suite].contains(member)) findings[suite][member].add(f);
  }
  // The run itself is a case, so that an INCONCLUSIVE one is not green, nor one with warnings and --strict.
  auto& run = cells["run"]["verdict"];
  if (verdict.state == "INCONCLUSIVE") {
    run.state = results::CaseState::error;
    run.reason = verdict.reasons.empty() ? verdict.state : verdict.reasons.front();
  } else if (verdict.exit_code == static_cast<int>(ExitCode::warn)) {
    run.state = results::CaseState::fail;
    run.reason = verdict.state + " with --strict";
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\">\n";
  for (const auto& [suite, entities] : cells) {
    Sums sums;
    std::string body;
    for (const auto& [name, cell] : entities)
      body += fmt::format("    <testcase classname=\"{}\" name=\"{}\">{}</testcase>\n", xml(suite), xml(name),
                          outcome_of(cell, findings[suite][name], sums));
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}  "
        "</testsuite>\n",
        xml(suite), entities.size(), sums.failures, sums.errors, sums.skipped, body);
  }
  return out + "</testsuites>\n";
}

std::string nodes_text(const Results& results, const VerdictData& verdict) {
  std::string out;
  for (const auto& s : verdict.entities) {
    const auto* e = entity_of(results, s.entity);
    if (e == nullptr || e->kind != "node") continue;
    std::string reason = s.reason;
    for (char& c : reason) c = c == '\n' || c == '\r' ? ' ' : c;
    out += e->name + " " + s.state + (reason.empty() ? "" : " " + reason) + "\n";
  }
  return out;
}

std::span<const MachineOutput> machine_outputs() noexcept {
  static constexpr MachineOutput outputs[] = {{"json", verdict_json},
                                              {"junit", verdict_junit},
                                              {"nodes", nodes_text},
                                              {"coverage", coverage_csv},
                                              {"prometheus", verdict_prometheus}};
  return outputs;
}

}  // namespace assay::report
