// SPDX-License-Identifier: Apache-2.0
// What Prometheus reads through node_exporter's textfile collector: states, findings, and the median of every
// metric by part. Of more than a thousand measured parts: the state each of them has, and the medians of the
// worst.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "measure/statistics.hpp"
#include "report/layout.hpp"
#include "report/report.hpp"
#include "report/summary_data.hpp"
#include "results/case_name.hpp"
#include "results/iso_time.hpp"
#include "verdict/judgement.hpp"

namespace assay::report {
namespace {

using results::Results;
using results::VerdictData;
using Labels = std::vector<std::pair<std::string, std::string>>;

std::string label_text(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    if (value.empty()) continue;  // an empty label is an absent one
    out += fmt::format("{}{}=\"", out.empty() ? "{" : ",", name);
    for (const char c : valid_utf8(value)) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    out += '"';
  }
  return out.empty() ? out : out + "}";
}

/// Metric families by name. What has the same labels twice, as two parts of one name, is one series: the text
/// format allows no second.
class Families {
 public:
  enum class Same { median, largest };  ///< the value of such a series

  void add(const std::string& name, const std::string& help, const Labels& labels, double value,
           Same same = Same::median) {
    if (!std::isfinite(value)) return;  // not taken: an absent series, never a 0
    Family& family = families_[name];
    family.help = help;
    auto& values = family.samples[label_text(labels)];
    if (same == Same::largest && !values.empty())
      values.front() = std::max(values.front(), value);
    else
      values.push_back(value);
  }

  std::string text() const {
    std::string out;
    for (const auto& [name, family] : families_) {
      out += fmt::format("# HELP {} {}\n# TYPE {} gauge\n", name, family.help, name);
      for (const auto& [labels, values] : family.samples)
        out += fmt::format("{}{} {}\n", name, labels, median(values));
    }
    return out;
  }

 private:
  struct Family {
    std::string help;
    std::map<std::string, std::vector<double>> samples;
  };
  std::map<std::string, Family> families_;
};

/// The names of the base units that Prometheus asks for.
std::string unit_suffix(const std::string& unit) {
  static const std::map<std::string, std::string> suffixes{{"s", "seconds"},
                                                           {"B", "bytes"},
                                                           {"B/s", "bytes_per_second"},
                                                           {"FLOP/s", "flop_per_second"},
                                                           {"FLOP", "flop"},
                                                           {"FLOP/J", "flop_per_joule"},
                                                           {"token/s", "tokens_per_second"},
                                                           {"op/s", "operations_per_second"},
                                                           {"Hz", "hertz"},
                                                           {"W", "watts"},
                                                           {"J", "joules"},
                                                           {"K", "kelvin"},
                                                           {"nat", "nats"},
                                                           {"1", "ratio"},
                                                           {"count", ""}};
  const auto at = suffixes.find(unit);
  return at == suffixes.end() ? unit : at->second;
}

std::string metric_name(const results::Metric& m) {
  std::string name = "assay_median_" + m.name;
  const std::string suffix = unit_suffix(m.unit);
  if (!suffix.empty() && !name.ends_with("_" + suffix)) name += "_" + suffix;
  for (char& c : name) {
    const bool upper = c >= 'A' && c <= 'Z',
               plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    c = upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '_';
  }
  // These endings are kept for counters and histograms.
  for (const char* kept : {"_total", "_count", "_sum", "_bucket"})
    if (name.ends_with(kept)) return name + "_value";
  return name;
}

/// node="node07" device="gpu3" of a part; both empty for the cluster, the device for a node itself.
struct EntityNames {
  std::string node, device;
};

EntityNames names_of(const verdict::EntityIndex& entities, std::int32_t row) {
  EntityNames names;
  const std::int32_t node = entities.node(row);
  if (node >= 0) names.node = entities.name(node);
  if (node == row || entities.kind(row) == "cluster") return names;
  names.device = entities.name(row);
  if (!names.node.empty() && names.device.starts_with(names.node + "/"))
    names.device.erase(0, names.node.size() + 1);
  return names;
}

constexpr std::size_t most_parts = 1000, worst_parts = 10;

/// Whether so many parts were measured that every series by part would make a file of hundreds of MB. Parts
/// that no case names, such as memory modules, have no medians.
bool is_large(const Results& results) {
  std::vector<bool> measured(results.entities.size());
  for (const auto& c : results.cases) {
    if (c.metrics.empty()) continue;
    for (const auto* rows : {&c.entity, &c.source, &c.destination})
      for (const std::int32_t row : *rows)
        if (const auto at = static_cast<std::size_t>(row); row >= 0 && at < measured.size())
          measured[at] = results.entities[at].kind != "link";
  }
  return static_cast<std::size_t>(std::ranges::count(measured, true)) > most_parts;
}

constexpr const char* part_states[] = {"PASS", "WARN", "FAIL", "INCONCLUSIVE", "NOT_TESTED"};

void add_run(Families& out, const Results& results, const VerdictData& verdict) {
  const auto& info = results.info;
  out.add("assay_run_info", "Level and version of the run that the other metrics come from.",
          {{"level", info.level}, {"version", info.assay_version}}, 1);
  out.add("assay_run_injected", "1 if faults were injected or the data are simulated.", {},
          info.injected ? 1 : 0);
  const auto time = [&](const char* name, const char* help, const std::string& iso) {
    if (const auto seconds = results::unix_seconds(iso))
      out.add(name, help, {}, static_cast<double>(*seconds));
  };
  time("assay_run_started_timestamp_seconds", "Start of the run.", info.started);
  time("assay_run_ended_timestamp_seconds", "End of the run; absent where it did not end in order.",
       info.ended);
  out.add("assay_exit_code", "0 PASS, 1 WARN with --strict, 2 FAIL, 3 INCONCLUSIVE.", {}, verdict.exit_code);
  for (const char* state : {"PASS", "WARN", "FAIL", "INCONCLUSIVE"})
    out.add("assay_verdict", "1 for the state of the run, 0 for the others.", {{"state", state}},
            verdict.state == state ? 1 : 0);
  const auto& a = verdict.accounting;
  const std::pair<const char*, std::int64_t> cases[] = {{"passed", a.passed},
                                                        {"failed", a.failed},
                                                        {"skipped", a.skipped},
                                                        {"error", a.error},
                                                        {"incomplete", a.incomplete}};
  for (const auto& [state, count] : cases)
    out.add("assay_cases", "Planned cases by what became of them.", {{"state", state}},
            static_cast<double>(count));
  out.add("assay_cases_required_missing", "Required cases without a result.", {},
          static_cast<double>(a.required_missing));
}

void add_states(Families& out, const verdict::EntityIndex& entities, const VerdictData& verdict, bool large) {
  for (const auto& s : verdict.entities) {
    const EntityNames names = names_of(entities, s.entity);
    if (names.node.empty()) continue;
    for (const char* state : part_states) {
      const double value = s.state == state ? 1 : 0;
      if (large && value == 0) continue;
      if (names.device.empty())
        out.add("assay_node_state",
                "1 for the state of the node; 0 for the others, which are left out beyond 1000 measured "
                "parts.",
                {{"node", names.node}, {"state", state}}, value);
      else
        out.add("assay_device_state",
                "1 for the state of a device, NIC or memory domain of a node; 0 for the others, which are "
                "left out beyond 1000 measured parts.",
                {{"node", names.node}, {"device", names.device}, {"state", state}}, value);
    }
  }
}

void add_findings(Families& out, const Results& results, const verdict::EntityIndex& entities,
                  const VerdictData& verdict) {
  std::map<std::string, std::int32_t> rows;
  for (std::size_t i = 0; i < results.entities.size(); ++i)
    rows.emplace(results.entities[i].name, static_cast<std::int32_t>(i));
  std::map<std::string, int> count{{"FAIL", 0}, {"WARN", 0}, {"INFO", 0}};
  for (const auto& f : verdict.findings) {
    ++count[f.severity];
    if (f.severity == "INFO") continue;
    const auto at = rows.find(f.name);
    const EntityNames names = at == rows.end() ? EntityNames{} : names_of(entities, at->second);
    const Labels labels{{"severity", f.severity}, {"name", f.name},     {"node", names.node},
                        {"device", names.device}, {"suite", f.suite},   {"metric", f.metric},
                        {"kind", f.kind},         {"action", f.action}, {"reference", f.reference_kind}};
    out.add("assay_finding", "1 for each finding of WARN or FAIL.", labels, 1);
    if (f.deficit)
      out.add("assay_finding_deficit_ratio",
              "By how much the part is worse than its reference, as a fraction of the rate.", labels,
              *f.deficit, Families::Same::largest);
  }
  for (const auto& [severity, n] : count)
    out.add("assay_findings", "Number of findings by severity.", {{"severity", severity}}, n);
}

/// The median of each part; of many only the worst, and none of what has no better end.
std::vector<std::pair<std::int32_t, double>> medians_by_part(const results::CaseData& c,
                                                             const results::Metric& m, bool large) {
  if (large && m.better == results::Better::none) return {};
  std::map<std::int32_t, std::vector<double>> values;
  const auto medians = row_medians(c, m);
  for (std::size_t r = 0; r < medians.size(); ++r) {
    if (!std::isfinite(medians[r])) continue;
    if (c.kind == "link" && r < c.source.size() && r < c.destination.size()) {
      values[c.source[r]].push_back(medians[r]);
      values[c.destination[r]].push_back(medians[r]);
    } else {
      values[c.entity[r]].push_back(medians[r]);
    }
  }
  std::vector<std::pair<std::int32_t, double>> out;
  for (const auto& [entity, all] : values) out.emplace_back(entity, median(all));
  if (!large || out.size() <= worst_parts) return out;
  const bool higher = m.better == results::Better::higher;
  std::partial_sort(out.begin(), out.begin() + worst_parts, out.end(), [&](const auto& a, const auto& b) {
    return higher ? a.second < b.second : a.second > b.second;
  });
  out.resize(worst_parts);
  return out;
}

/// The median of each metric by part. A link counts for both of its ends, so that there are as many series as
/// parts and not as pairs. Retest cases measure suspects only, and would come and go: they are left out.
void add_medians(Families& out, const Results& results, const verdict::EntityIndex& entities, bool large) {
  if (large)
    out.add("assay_medians_left_out",
            "1 where only the worst parts of each metric have a median here, since more than 1000 were "
            "measured.",
            {}, 1);
  for (const auto& c : results.cases) {
    if (results::is_retest(c.name)) continue;
    const std::string name = results::base_name(c.name);
    for (const auto& m : c.metrics) {
      if (m.role != results::Role::metric) continue;
      const std::string family = metric_name(m);
      for (const auto& [entity, value] : medians_by_part(c, m, large)) {
        const EntityNames names = names_of(entities, entity);
        out.add(family,
                "Median of the samples of a part in a case; where pairs were measured, over the pairs of the "
                "part.",
                {{"node", names.node}, {"device", names.device}, {"suite", c.suite}, {"case", name}}, value);
      }
    }
  }
}

}  // namespace

std::string verdict_prometheus(const Results& results, const VerdictData& verdict) {
  Families out;
  const verdict::EntityIndex entities(results.entities);
  add_run(out, results, verdict);
  const bool large = is_large(results);
  add_states(out, entities, verdict, large);
  add_findings(out, results, entities, verdict);
  add_medians(out, results, entities, large);
  return out.text();
}

}  // namespace assay::report
