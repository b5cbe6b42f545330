// SPDX-License-Identifier: Apache-2.0
// The data block of the page; results-schema/page.schema.json says what is in it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ranges>

#include "measure/statistics.hpp"
#include "report/html/page.hpp"
#include "report/report.hpp"
#include "results/json_io.hpp"
#include "verdict/trend.hpp"

namespace assay::report {
namespace {

/// Five digits are more than a median deserves, and half the bytes.
Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  // Powers below one are no exact numbers.
  const double digits = 5 - std::ceil(std::log10(std::abs(value))), power = std::pow(10.0, std::abs(digits));
  const double out = digits < 0 ? std::round(value / power) * power : std::round(value * power) / power;
  return std::isfinite(out) ? Json(out) : Json(value);
}

Json list(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double v : values) out.push_back(rounded(v));
  return out;
}

constexpr const char* version = "1.2";

/// As `assay verdict --json`, less the parts that passed: `parts` has the states of all.
Json verdict_of(const Page& page) {
  results::VerdictData v = page.in.verdict;
  std::erase_if(v.entities, [](const auto& e) { return e.state == "PASS" && e.reason.empty(); });
  return results::parse(verdict_json(page.in.results, v));
}

Json parts_of(const Page& page) {
  Json row = Json::array(), name = Json::array(), kind = Json::array(), node = Json::array(),
       state = Json::array();
  std::vector<std::string> states(page.in.results.entities.size());
  for (const auto& s : page.in.verdict.entities)
    if (s.entity >= 0 && static_cast<std::size_t>(s.entity) < states.size())
      states[static_cast<std::size_t>(s.entity)] = s.state;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto& e = page.in.results.entities[i];
    if (e.kind == "link") continue;
    row.push_back(i);
    name.push_back(e.name);
    kind.push_back(e.kind);
    node.push_back(page.in.judgement.entities.node(static_cast<std::int32_t>(i)));
    state.push_back(states[i]);
  }
  return {{"row", row}, {"name", name}, {"kind", kind}, {"node", node}, {"state", state}};
}

/// Whole numbers as a JSON list. There are hundreds of thousands: as text at once, not as values.
template <class Values, class Get>
std::string numbers(const Values& values, const Get& get) {
  std::string out = "[";
  for (const auto& v : values) fmt::format_to(std::back_inserter(out), "{},", get(v));
  if (out.size() > 1) out.pop_back();
  return out + "]";
}

/// Medians as whole ten-thousandths (of links, of which there are many, thousandths) of the metric's own
/// median, counted from it: short.
std::string series_text(const verdict::Series& s, std::size_t rows) {
  std::vector<double> medians;
  for (const auto& row : s.rows) medians.push_back(row.median);
  const double base = s.kind == "link" ? 1e3 : 1e4;
  double scale = std::abs(median(medians)) / base;
  if (!(scale > 0) || !std::isfinite(scale)) scale = 1 / base;
  const bool equal = std::ranges::all_of(s.rows, [&](const auto& row) { return row.n == s.rows.front().n; });
  Json out{{"suite", s.suite},
           {"case", s.name},
           {"metric", s.metric},
           {"unit", s.unit},
           {"better", results::to_string(s.better)},
           {"kind", s.kind},
           {"stage", s.stage},
           {"judged", s.judged},
           {"path", s.path},
           {"rows", rows},
           {"scale", scale},
           {"base", base}};
  if (equal && !s.rows.empty()) out["samples"] = s.rows.front().n;
  if (!std::isnan(s.dead_value)) out["dead"] = s.dead_value;
  out["strata"] = s.strata;
  std::string text = results::dump(out);
  text.pop_back();
  text += ",\"median\":" + numbers(medians, [&](double m) {
            const double ticks = std::round(m / scale) - base;
            return std::abs(ticks) < 1e15 ? std::to_string(static_cast<std::int64_t>(ticks))
                                          : std::string("null");
          });
  if (!equal || s.rows.empty())
    text += ",\"samples\":" + numbers(s.rows, [](const auto& row) { return row.n; });
  if (s.strata.size() > 1 && s.kind != "link")
    text += ",\"stratum\":" + numbers(s.rows, [](const auto& row) { return row.stratum; });
  return text + "}";
}

/// Which parts a series has values of; most series share theirs.
class RowSets {
 public:
  std::size_t of(const verdict::Series& s) {
    std::vector<std::int32_t> key;
    const bool link = s.kind == "link";
    for (const auto& row : s.rows) {
      key.push_back(link ? row.source : row.entity);
      if (link) key.push_back(row.destination);
    }
    const auto [it, fresh] = known_.try_emplace({link, std::move(key)}, known_.size());
    if (fresh) {
      text_ += (text_.empty() ? "{\"part\":" : ",{\"part\":") +
               numbers(s.rows, [&](const auto& row) { return link ? row.source : row.entity; });
      if (link) text_ += ",\"to\":" + numbers(s.rows, [](const auto& row) { return row.destination; });
      text_ += "}";
    }
    return it->second;
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::map<std::pair<bool, std::vector<std::int32_t>>, std::size_t> known_;
  std::string text_;
};

Json evidence_json(const Page& page) {
  Json out = Json::array();
  const auto timed = [](const std::vector<std::pair<double, double>>& points) {
    Json pairs = Json::array();
    for (const auto& [t, value] : points) pairs.push_back(Json::array({rounded(t), rounded(value)}));
    return pairs;
  };
  for (const auto& e : page.evidence) {
    Json marks = Json::array();
    for (const auto& m : e.marks)
      marks.push_back({{"from", rounded(m.from)}, {"to", rounded(m.to)}, {"kind", m.kind}, {"text", m.text}});
    out.push_back({{"finding", e.finding},
                   {"metric", e.series->full()},
                   {"unit", e.series->unit},
                   {"peer_count", e.peer_count},
                   {"peers", list(e.peers)},
                   {"first", list(e.own)},
                   {"again", list(e.again)},
                   {"first_at", timed(e.own_at)},
                   {"again_at", timed(e.again_at)},
                   {"marks", std::move(marks)}});
  }
  return out;
}

Json telemetry_json(const Page& page) {
  constexpr std::size_t points = 1200;
  const auto& t = page.in.results.telemetry;
  std::map<std::int32_t, std::pair<std::vector<std::string>, std::vector<std::size_t>>>
      drawn;  // and its rows
  for (const auto& [name, parts] : page.drawn)
    for (const std::int32_t part : parts) drawn[part].first.push_back(name);
  for (std::size_t i = 0; i < t.t.size(); ++i)
    if (const auto at = drawn.find(t.entity[i]); at != drawn.end()) at->second.second.push_back(i);
  Json out = Json::array();
  for (const auto& [part, names_and_rows] : drawn) {
    const auto& [names, rows] = names_and_rows;
    const std::size_t every = std::max<std::size_t>(1, (rows.size() + points - 1) / points);
    const auto kept = [&, &its = rows](const std::vector<double>& values) {
      Json list = Json::array();
      for (std::size_t i = 0; i < its.size(); i += every) list.push_back(rounded(values[its[i]]));
      return list;
    };
    Json quantities = Json::object();
    for (const std::string& name : names)
      quantities[name] = {{"unit", t.unit.contains(name) ? t.unit.at(name) : ""},
                          {"values", kept(t.number.at(name))}};
    out.push_back({{"part", part}, {"t", kept(t.t)}, {"quantities", std::move(quantities)}});
  }
  return out;
}

/// The page draws where a flag begins.
Json flags_json(const Page& page) {
  constexpr std::size_t most = 2000;
  Json out = Json::array();
  for (const auto* f : thinned(page.in.results.flags, most))
    out.push_back({{"t", rounded(f->t)}, {"part", f->entity}, {"flag", f->flag}, {"value", f->value}});
  return out;
}

Json spans_json(const Page& page) {
  Json out = Json::array();
  for (const auto& s : page.spans)
    out.push_back({{"from", rounded(s.from)}, {"to", rounded(s.to)}, {"suite", s.suite}, {"case", s.name}});
  return out;
}

/// When values were wrong; the section has them in full.
Json errors_json(const Page& page) {
  constexpr std::size_t most = 500;
  Json out = Json::array();
  for (const auto& e : page.in.results.errors)
    if (out.size() < most) out.push_back({{"t", rounded(e.t)}, {"part", e.entity}});
  return out;
}

Json sweeps_json(const Page& page) {
  Json out = Json::array();
  for (std::size_t i = 0; i < page.sweeps.size(); ++i) {
    const auto& s = page.sweeps[i];
    const auto& l = page.sweep_lines[i];
    Json series = Json::array(), blamed = Json::array();
    for (const auto& [name, values] : l.blamed) blamed.push_back({{"name", name}, {"values", list(values)}});
    for (const auto* one : s.series) series.push_back(one - page.in.judgement.series.data());
    out.push_back({{"title", s.title},
                   {"unit", s.unit},
                   {"better", s.higher_is_better ? "higher" : "lower"},
                   {"sizes", s.sizes},
                   {"series", std::move(series)},
                   {"low", list(l.low)},
                   {"median", list(l.middle)},
                   {"high", list(l.high)},
                   {"bound", list(l.bound)},
                   {"bound_kind", l.bound_kind},
                   {"previous", list(l.previous)},
                   {"blamed", std::move(blamed)}});
  }
  return out;
}

Json matrices_json(const Page& page) {
  Json out = Json::array();
  for (const auto& m : page.matrices.shown) {
    Json rails = Json::array();
    for (const auto& r : m.rails) rails.push_back(r.rail);
    out.push_back({{"series", m.series - page.in.judgement.series.data()},
                   {"order", m.nodes},
                   {"inside", m.inside},
                   {"median", rounded(m.all.median)},
                   {"rails", std::move(rails)}});
  }
  return out;
}

Json trend_json(const std::vector<verdict::Snapshot>& all) {
  Json runs = Json::array(), metrics = Json::array();
  if (all.size() < 2) return {{"runs", runs}, {"metrics", metrics}};
  for (const auto& r : all)
    runs.push_back({{"file", r.source.file}, {"started", r.source.started}, {"run_id", r.source.run_id}});
  for (const auto& m : verdict::trend_of(all)) {
    Json run = Json::array(), low = Json::array(), middle = Json::array(), high = Json::array(),
         changes = Json::array();
    for (const auto& p : m.points) {
      run.push_back(p.run);
      low.push_back(rounded(p.low));
      middle.push_back(rounded(p.median));
      high.push_back(rounded(p.high));
    }
    for (const auto& c : m.changes)
      changes.push_back({{"part", c.name}, {"run", c.run}, {"change", rounded(c.change)}});
    metrics.push_back({{"metric", m.metric},
                       {"unit", m.unit},
                       {"run", run},
                       {"low", low},
                       {"median", middle},
                       {"high", high},
                       {"changes", changes}});
  }
  return {{"runs", runs}, {"metrics", metrics}};
}

Json comparison_json(const Page& page) {
  const auto& c = *page.in.comparison;
  Json metrics = Json::array();
  for (const auto& m : c.metrics) {
    Json unit = Json::array(), ratio = Json::array();
    for (const auto& u : m.units) {
      unit.push_back(u.name);
      ratio.push_back(rounded(u.ratio));
    }
    metrics.push_back({{"metric", m.full()},
                       {"unit", m.unit},
                       {"relation", verdict::to_string(m.relation)},
                       {"a", rounded(m.a.median)},
                       {"b", rounded(m.b.median)},
                       {"ratio", rounded(m.ratio.estimate)},
                       {"low", rounded(m.ratio.low)},
                       {"high", rounded(m.ratio.high)},
                       {"node", unit},
                       {"node_ratio", ratio}});
  }
  return {{"relation", verdict::to_string(c.relation)},
          {"exit_code", c.exit_code},
          {"metrics", std::move(metrics)}};
}

Json joint_json(const JointRuns& joint) {
  Json runs = Json::array();
  for (const auto& r : joint.runs)
    runs.push_back(
        {{"file", r.file}, {"started", r.started}, {"state", r.state}, {"exit_code", r.exit_code}});
  return {{"name", joint.name},
          {"state", joint.verdict.state},
          {"exit_code", joint.verdict.exit_code},
          {"findings", joint.verdict.findings.size()},
          {"runs", std::move(runs)}};
}

Json contract_json(const Page& page) {
  Json out = Json::array();
  for (const auto& r : page.contract)
    out.push_back({{"promised", r.promised},
                   {"where", r.where},
                   {"metric", r.metric},
                   {"unit", r.unit},
                   {"bound", rounded(r.bound)},
                   {"median", rounded(r.median)},
                   {"low", rounded(r.low)},
                   {"high", rounded(r.high)},
                   {"parts", r.parts},
                   {"beyond", r.beyond},
                   {"worst", r.worst},
                   {"worst_value", rounded(r.worst_value)},
                   {"margin", rounded(r.margin)},
                   {"met", r.met}});
  return out;
}

Json sensitivity_json(const Page& page) {
  Json out = Json::array();
  for (const auto& s : page.sensitivity)
    out.push_back({{"metric", s.metric},
                   {"basis", s.basis},
                   {"stratum", s.stratum},
                   {"parts", s.parts},
                   {"samples", s.samples},
                   {"spread", rounded(s.spread)},
                   {"error", rounded(s.error)},
                   {"delta", rounded(s.delta)},
                   {"visible", rounded(s.visible)}});
  return out;
}

}  // namespace

std::string trend_data(const std::vector<verdict::Snapshot>& runs) {
  return results::dump(Json{{"format", "assay-page"}, {"version", version}, {"trend", trend_json(runs)}});
}

std::string page_data(const Page& page) {
  const auto& i = page.in.results.info;
  Json out{
      {"format", "assay-page"}, {"version", version}, {"file", page.in.file}, {"sha256", page.in.sha256}};
  out["run"] = {{"run_id", i.run_id},
                {"state", i.state},
                {"started", i.started},
                {"ended", i.ended},
                {"level", i.level},
                {"seed", i.seed},
                {"command_line", i.command_line},
                {"assay_version", i.assay_version},
                {"plan_hash", i.plan_hash},
                {"injected", i.injected},
                {"simulated", page.in.results.config.contains("simulated")}};
  out["verdict"] = verdict_of(page);
  out["parts"] = parts_of(page);
  out["contract"] = contract_json(page);
  out["sensitivity"] = sensitivity_json(page);
  out["evidence"] = evidence_json(page);
  out["matrices"] = matrices_json(page);
  out["sweeps"] = sweeps_json(page);
  out["telemetry"] = telemetry_json(page);
  out["flags"] = flags_json(page);
  out["spans"] = spans_json(page);
  out["errors"] = errors_json(page);
  out["trend"] = trend_json(page.in.runs);
  if (page.in.comparison) out["comparison"] = comparison_json(page);
  if (page.in.joint) out["joint"] = joint_json(*page.in.joint);
  RowSets rows;
  std::string series;
  // What explains a pair (rounds, bytes) judges nothing and is drawn nowhere.
  for (const auto& s : page.in.judgement.series)
    series +=
        (series.empty() ? "" : ",") + (s.kind == "link" && !s.judged ? "null" : series_text(s, rows.of(s)));
  std::string text = results::dump(out);
  text.pop_back();
  return text + ",\"rows\":[" + rows.text() + "],\"series\":[" + series + "]}";
}

}  // namespace assay::report
