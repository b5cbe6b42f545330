// SPDX-License-Identifier: Apache-2.0
// Values that cannot be: infinite ones, and of rates and times nothing and less. No comparison takes them, so
// they are judged by themselves.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/units.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/network_constants.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict {
namespace {

/// Samples of one row, and those that cannot be.
struct Row {
  std::size_t index = 0, taken = 0, impossible = 0;
  double example = 0;
  bool dead() const { return 2 * impossible > taken; }  ///< its median cannot be
};

Row row_of(const results::CaseData& c, const results::Metric& m, const results::Held<double>& values,
           std::size_t r) {
  Row row;
  row.index = r;
  const std::size_t width = m.per_sample ? c.samples() : 1;
  const std::size_t n = m.per_sample && r < c.count.size()
                            ? std::min(width, static_cast<std::size_t>(std::max(0, c.count[r])))
                            : width;
  for (std::size_t i = r * width; i < std::min(r * width + n, values.size()); ++i) {
    if (std::isnan(values[i])) continue;
    ++row.taken;
    const double value = bounded(values[i]);
    if (std::isfinite(value) && (value > 0 || !is_rate_or_time(m.unit))) continue;
    ++row.impossible;
    row.example = values[i];
  }
  return row;
}

std::string value_text(double value, const std::string& unit) {
  return std::isinf(value) ? std::string(value > 0 ? "an infinite value" : "minus infinity")
                           : format_quantity(value, unit);
}

std::string in_others(std::size_t metrics) {
  if (metrics < 2) return "";
  return ", and so in " + std::to_string(metrics - 1) + (metrics == 2 ? " other metric" : " other metrics");
}

/// What findings about links that FAIL explain: links of a part that is named.
class Failed {
 public:
  explicit Failed(Judgement& j) : j_(j), places_(j) {
    for (auto& f : j.found) {
      if (f.finding.severity != "FAIL" || f.finding.kind != "slow") continue;
      const Series* s = series_of(j, f.finding);
      if (s != nullptr && s->kind == "link") found_.push_back(&f);
    }
  }

  /// The finding that explains a link, of this metric where there is one; nullptr without any.
  Found* of(const std::string& metric, std::int32_t link, std::int32_t source,
            std::int32_t destination) const {
    Found* explains = nullptr;
    for (Found* f : found_) {
      const auto names = [&](std::int32_t row) {
        return row >= 0 && std::find(f->rows.begin(), f->rows.end(), row) != f->rows.end();
      };
      const auto names_end = [&](std::int32_t end) {
        return names(end) || names(j_.entities.node(end)) || names(places_.switch_of(end));
      };
      // A pair, and a path between two switches, is named by both of its ends.
      const bool both = f->finding.level == "link" || (f->finding.level == "switch" && f->rows.size() > 1);
      if (names(link) || (both ? names_end(source) && names_end(destination)
                               : names_end(source) || names_end(destination))) {
        if (explains == nullptr || f->finding.metric == metric) explains = f;
        if (f->finding.metric == metric) break;
      }
    }
    return explains;
  }

 private:
  const Judgement& j_;
  network::Places places_;
  std::vector<Found*> found_;
};

class Impossible {
 public:
  Impossible(Judgement& j, bool links) : j_(j), links_(links) {
    if (links) failed_.emplace(j);
  }

  void run() {
    for (const auto& c : j_.results.cases) {
      if (c.state != results::CaseState::pass && c.state != results::CaseState::fail) continue;
      if ((c.kind == "link") != links_) continue;
      for (const auto& m : c.metrics)
        if (m.role == results::Role::metric && m.better != results::Better::none) look_at(c, m);
    }
    for (const auto& [entity, dead] : dead_) tell(entity, dead);
    for (auto& [found, of] : of_failed_) {
      auto& f = found->finding;
      f.text += "; " + std::to_string(of.links) + (of.links == 1 ? " link" : " links") + " of it measured " +
                of.example + ", judged as the slowest of all";
    }
    for (auto& [text, rows, metrics] : marred_) j_.gap(text + in_others(metrics), std::move(rows));
  }

 private:
  struct Dead {
    const results::CaseData* where = nullptr;
    const results::Metric* metric = nullptr;
    Row row;
    std::size_t others = 0, metrics = 0;
  };

  std::vector<std::int32_t> ends_of(const results::CaseData& c, std::size_t r) const {
    std::vector<std::int32_t> rows = {c.entity[r]};
    if (r < c.source.size()) rows.push_back(c.source[r]);
    if (r < c.destination.size()) rows.push_back(c.destination[r]);
    return rows;
  }

  void look_at(const results::CaseData& c, const results::Metric& m) {
    std::vector<Row> dead, marred;
    std::size_t alive = 0;
    const auto values = m.values.held();
    for (std::size_t r = 0; r < c.entity.size(); ++r) {
      const Row row = row_of(c, m, values, r);
      if (row.taken == 0) continue;
      alive += row.dead() ? 0 : 1;
      if (row.impossible > 0) (row.dead() ? dead : marred).push_back(row);
    }
    const std::string metric = c.path() + ":" + m.name;
    // Who holds up a collective or a link is not told by its own samples, and what most of them say is said
    // of the measurement.
    const bool own = c.kind != "link" && (c.stage == "node-local" || c.stage.empty());
    if (own && alive > 0 && alive >= dead.size()) {
      for (const Row& row : dead) {
        auto& known = dead_[c.entity[row.index]];
        if (known.metrics++ == 0) known = {&c, &m, row, alive, 1};
      }
    } else {
      for (const Row& row : dead)
        if (!explained(c, m, row)) marred.push_back(row);
    }
    if (marred.empty()) return;
    std::vector<std::int32_t> rows;
    std::vector<std::string> names;
    for (const Row& row : marred) {
      const auto ends = ends_of(c, row.index);
      rows.insert(rows.end(), ends.begin(), ends.end());
      names.push_back(c.kind == "link" && ends.size() == 3
                          ? j_.entities.name(ends[1]) + ">" + j_.entities.name(ends[2])
                          : j_.entities.name(ends[0]));
    }
    const auto [at, fresh] = marred_of_.try_emplace(rows, marred_.size());
    if (fresh)
      marred_.push_back({metric + ": an impossible value (" + value_text(marred.front().example, m.unit) +
                             ") was measured on " + first_of(names),
                         std::move(rows), 1});
    else
      ++marred_[at->second].metrics;
  }

  /// Whether a dead link is that of a part that is named; it is counted there.
  bool explained(const results::CaseData& c, const results::Metric& m, const Row& row) {
    if (!failed_ || row.index >= std::min(c.source.size(), c.destination.size())) return false;
    const std::string metric = c.suite + "/" + base_name(c.name) + ":" + m.name;
    Found* found = failed_->of(metric, c.entity[row.index], c.source[row.index], c.destination[row.index]);
    if (found == nullptr) return false;
    if (found->finding.metric == metric) {
      auto& of = of_failed_[found];
      ++of.links;
      of.example = value_text(row.example, m.unit);
    }
    return true;
  }

  void tell(std::int32_t entity, const Dead& dead) {
    const auto& c = *dead.where;
    auto f = j_.about(entity, "FAIL", "fact", "dead");
    f.suite = c.suite;
    f.metric = c.path() + ":" + dead.metric->name;
    f.unit = dead.metric->unit;
    f.better = results::to_string(dead.metric->better);
    f.samples = static_cast<std::int64_t>(dead.row.taken);
    if (std::isfinite(dead.row.example)) f.value = dead.row.example;
    f.action = "TRIAGE";
    f.since = c.started;
    f.evidence = "/cases/" + c.path() + "/" + dead.metric->name;
    const std::string taken = std::to_string(dead.row.taken);
    f.text = f.name + ": " + f.metric + " was " + value_text(dead.row.example, f.unit) + " in " +
             (dead.row.impossible < dead.row.taken
                  ? std::to_string(dead.row.impossible) + " of " + taken + " samples"
              : dead.row.taken == 1 ? "its only sample"
                                    : "all " + taken + " samples") +
             ", while " + std::to_string(dead.others) +
             (dead.others == 1 ? " other part works" : " other parts work");
    f.text += in_others(dead.metrics) + "; next: remove it and test it alone";
    j_.add(std::move(f), {entity});
  }

  Judgement& j_;
  bool links_;
  std::optional<Failed> failed_;
  struct OfFailed {
    std::size_t links = 0;
    std::string example;
  };
  std::map<Found*, OfFailed> of_failed_;
  std::map<std::int32_t, Dead> dead_;
  struct Marred {
    std::string text;
    std::vector<std::int32_t> rows;
    std::size_t metrics = 0;
  };
  std::vector<Marred> marred_;  ///< in the order in which they were met
  std::map<std::vector<std::int32_t>, std::size_t> marred_of_;
};

}  // namespace

void judge_impossible(Judgement& j) { Impossible(j, false).run(); }
void judge_impossible_links(Judgement& j) { Impossible(j, true).run(); }

}  // namespace assay::verdict
