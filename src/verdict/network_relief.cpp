// SPDX-License-Identifier: Apache-2.0
#include "verdict/network_relief.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/population.hpp"

namespace assay::verdict::network {
namespace {

bool against_the_past(const results::Finding& f) {
  return f.reference_kind == "history" || f.reference_kind == "baseline";
}

const Series* links_of(const Judgement& j, const results::Finding& f) {
  const bool slow = f.kind == "slow" || (f.kind == "drift" && f.reference_kind == "history");
  const Series* s = slow ? series_of(j, f) : nullptr;
  return s != nullptr && s->kind == "link" && !s->is_of(results::MetricClass::storage) ? s : nullptr;
}

class Relief {
 public:
  Relief(const Judgement& j, const Places& places) : j_(j), places_(places) {
    for (const auto& f : j.found) {
      if (f.finding.level != "switch" || f.finding.severity == "INFO" || links_of(j, f.finding) == nullptr)
        continue;
      const std::set<std::int32_t> rows(f.rows.begin(), f.rows.end());
      if (rows.size() == 1) {  // a bound is another reference than what parts were before
        double& most = deficits_[*rows.begin()];
        if (f.finding.reference_kind == "peers") most = std::max(most, f.finding.deficit.value_or(0));
      }
      if (f.finding.severity != "FAIL") continue;
      if (rows.size() == 1) switches_.insert(*rows.begin());
      if (rows.size() == 2) paths_.emplace(*rows.begin(), *rows.rbegin());
    }
  }

  /// Of the paths between these switches only.
  Relief(const Judgement& j, const Places& places, const std::set<std::int32_t>& switches)
      : j_(j), places_(places) {
    for (const auto a : switches)
      for (const auto b : switches)
        if (a < b) paths_.emplace(a, b);
  }

  /// A switch that is slow only with others that fail is not at fault itself: their links tell, the least
  /// slow first.
  void leave_out_partners(Judgement& j) {
    std::vector<std::pair<double, std::int32_t>> order;
    for (const auto row : switches_) {
      double most = 0;
      for (const auto& f : j.found)
        if (names(f, row)) most = std::max(most, f.finding.deficit.value_or(0));
      order.emplace_back(most, row);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [deficit, leaf] : order) {
      switches_.erase(leaf);  // its links count unless they cross another
      const bool told = std::any_of(j.found.begin(), j.found.end(), [&, row = leaf](const Found& f) {
        return names(f, row) && !well_with_others(f, row) && !has_only_worse_partners(f, row);
      });
      if (told) {
        switches_.insert(leaf);
        continue;
      }
      deficits_.erase(leaf);
      std::erase_if(j.found, [&, row = leaf](const Found& f) { return names(f, row); });
    }
    std::erase_if(j.found, [&](const Found& f) {
      if (f.finding.level != "switch" || f.finding.severity != "WARN" || f.rows.size() != 1 ||
          links_of(j, f.finding) == nullptr)
        return false;
      return has_only_worse_partners(f, f.rows.front());
    });
  }

  bool any() const { return !deficits_.empty() || !paths_.empty(); }

  bool explains(const Found& found) const {
    const auto& f = found.finding;
    const Series* s = links_of(j_, f);
    if (s == nullptr) return false;
    if (f.level == "switch") {  // a path between a switch that fails and another
      const std::set<std::int32_t> rows(found.rows.begin(), found.rows.end());
      return rows.size() == 2 && (switches_.contains(*rows.begin()) || switches_.contains(*rows.rbegin()));
    }
    if (f.level == "link") {
      const auto row = row_named(*s, f.name);
      return row != nullptr && crosses(*row);
    }
    if (f.level == "cluster")
      return f.reference_kind != "peers" && !f.members.empty() &&
             std::all_of(f.members.begin(), f.members.end(), [&](const std::string& member) {
               const auto row = row_named(*s, member);
               return row != nullptr && crosses(*row);
             });
    return !found.rows.empty() && like_its_switch(*s, f, found.rows.front());
  }

 private:
  bool names(const Found& f, std::int32_t leaf) const {
    return f.finding.level == "switch" && f.finding.severity == "FAIL" && !f.rows.empty() &&
           std::all_of(f.rows.begin(), f.rows.end(), [&](std::int32_t row) { return row == leaf; }) &&
           links_of(j_, f.finding) != nullptr;
  }

  bool well_with_others(const Found& f, std::int32_t leaf) const {
    constexpr std::size_t least = 3;
    const Series& s = *links_of(j_, f.finding);
    const auto leaves = [&](const SeriesRow& row) {
      const auto from = places_.switch_of(row.source), to = places_.switch_of(row.destination);
      return from >= 0 && to >= 0 && from != to && (from == leaf || to == leaf);
    };
    const auto own = rates_of(s, [&](const SeriesRow& row) { return leaves(row) && !crosses(row); });
    const auto usual = rates_of(s, [&](const SeriesRow& row) {
      return places_.switch_of(row.source) != places_.switch_of(row.destination) && !leaves(row) &&
             !crosses(row);
    });
    return own.size() >= least && usual.size() >= least &&
           quantile(own, 0.25) >= (1 - constants::delta_nic) * median(usual);
  }

  /// Each of its links is one of another switch that fails, and what these switches have between them is no
  /// faster at its slow end, and slower in the mean: they send slowly what this one receives.
  bool has_only_worse_partners(const Found& f, std::int32_t leaf) const {
    const auto touches_leaf = [&](const SeriesRow& row) {
      return places_.switch_of(row.source) == leaf || places_.switch_of(row.destination) == leaf;
    };
    const auto across = [&](const SeriesRow& row) {
      const auto from = places_.switch_of(row.source), to = places_.switch_of(row.destination);
      return from >= 0 && to >= 0 && from != to;
    };
    const Series& s = *links_of(j_, f.finding);
    const bool only = std::ranges::none_of(s.rows, [&](const SeriesRow& row) {
      const auto from = places_.switch_of(row.source), to = places_.switch_of(row.destination);
      return across(row) && touches_leaf(row) && !switches_.contains(from == leaf ? to : from);
    });
    const auto own = rates_of(s, [&](const SeriesRow& row) { return across(row) && touches_leaf(row); });
    const auto others = rates_of(s, [&](const SeriesRow& row) { return across(row) && !touches_leaf(row); });
    if (!only || own.empty() || others.empty()) return false;
    const double least = 1 - constants::delta_nic;
    return quantile(own, 0.25) >= least * quantile(others, 0.25) && mean_of(others) < least * mean_of(own);
  }

  bool crosses(const SeriesRow& row) const {
    const auto from = places_.switch_of(row.source), to = places_.switch_of(row.destination);
    if (from < 0 || to < 0 || from == to) return false;
    return switches_.contains(from) || switches_.contains(to) || paths_.contains(std::minmax(from, to));
  }

  const SeriesRow* row_named(const Series& s, const std::string& name) const {
    auto& named = names_[&s];
    if (named.empty())
      for (const auto& row : s.rows) named.emplace(name_of(j_, row), &row);
    const auto at = named.find(name);
    return at == named.end() ? nullptr : at->second;
  }

  /// Rates of the links that `wanted` takes, by the row and what of its ends.
  template <typename Wanted>
  static std::vector<double> rates_of(const Series& s, const Wanted& wanted) {
    std::vector<double> rates;
    for (const auto& row : s.rows)
      if (row.median > 0 && wanted(row))
        rates.push_back(s.better == results::Better::lower ? 1 / row.median : row.median);
    return rates;
  }

  static double mean_of(const std::vector<double>& rates) {
    return std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
  }

  bool is_of(std::int32_t end, std::int32_t part) const {
    return end == part || j_.entities.node(end) == part;
  }
  bool touches(const SeriesRow& row, std::int32_t part) const {
    return is_of(row.source, part) || is_of(row.destination, part);
  }

  /// Across its switch, each way by the lower quartile: a switch may be slow one way only, and a part the
  /// other.
  bool like_its_switch(const Series& s, const results::Finding& f, std::int32_t part) const {
    const auto leaf = places_.switch_of(part);
    if (leaf < 0 || !tells_of(leaf, f)) return false;
    const double least = 1 - constants::delta_nic;
    bool compared = false;
    for (const bool sent : {true, false}) {
      const auto leaves = [&](const SeriesRow& row) {
        const bool from = places_.switch_of(row.source) == leaf,
                   to = places_.switch_of(row.destination) == leaf;
        return from != to && from == sent;
      };
      const auto own = rates_of(s, [&](const SeriesRow& row) { return leaves(row) && touches(row, part); });
      const auto others =
          rates_of(s, [&](const SeriesRow& row) { return leaves(row) && !touches(row, part); });
      if (own.empty() || others.empty()) continue;
      if (quantile(own, 0.25) < least * quantile(others, 0.25)) return false;
      compared = true;
    }
    if (!compared) return false;
    const bool inside = f.reference_kind == "peers" || f.kind == "drift";
    return !inside || !slow_inside(s, leaf, part, least);
  }

  /// Whether a switch is said to be so slow that a part below it may be. One that only warns tells why a part
  /// is below its own past.
  bool tells_of(std::int32_t leaf, const results::Finding& f) const {
    if (!against_the_past(f)) return switches_.contains(leaf);
    const auto at = deficits_.find(leaf);
    if (at == deficits_.end()) return false;
    return f.kind != "drift" ||
           log_deficit(f.deficit.value_or(0)) - log_deficit(at->second) < log_deficit(constants::delta_warn);
  }

  /// What stays below the switch says more of a node than what crosses it.
  bool slow_inside(const Series& s, std::int32_t leaf, std::int32_t part, double least) const {
    const auto inside = rates_of(s, [&](const SeriesRow& row) {
      return touches(row, part) && places_.switch_of(row.source) == leaf &&
             places_.switch_of(row.destination) == leaf;
    });
    const auto usual =
        rates_of(s, [&](const SeriesRow& row) { return !touches(row, part) && !crosses(row); });
    return !inside.empty() && !usual.empty() && quantile(inside, 0.75) < least * median(usual);
  }

  const Judgement& j_;
  const Places& places_;
  std::set<std::int32_t> switches_;          ///< that fail
  std::map<std::int32_t, double> deficits_;  ///< by switch that fails or warns
  std::set<std::pair<std::int32_t, std::int32_t>> paths_;
  mutable std::map<const Series*, std::map<std::string, const SeriesRow*>> names_;
};

}  // namespace

bool is_about_switches(const Judgement& j, const results::Finding& f) {
  return f.level == "cluster" && !f.members.empty() &&
         std::ranges::all_of(f.members, [&](const auto& name) { return switch_row(j, name) >= 0; });
}

bool relieve_across(Judgement& j, const Places& places, const std::set<std::int32_t>& switches) {
  const Relief relief(j, places, switches);
  bool failed = false;
  std::erase_if(j.found, [&](const Found& f) {
    const bool same = f.finding.reference_kind != "peers" && relief.explains(f);
    failed = failed || (same && f.finding.severity == "FAIL");
    return same;
  });
  return failed;
}

bool fold_floors(Judgement& j, std::set<std::int32_t> own) {
  for (const auto& s : j.series)
    for (const auto& row : s.rows)
      if (s.kind == "link" && own.contains(row.source) && own.contains(row.destination))
        own.insert(row.entity);
  bool failed = false;
  std::erase_if(j.found, [&](const Found& f) {
    const bool same = f.finding.reference_kind == "physical" && links_of(j, f.finding) != nullptr &&
                      !f.rows.empty() &&
                      std::ranges::all_of(f.rows, [&](std::int32_t row) { return own.contains(row); });
    failed = failed || (same && f.finding.severity == "FAIL");
    return same;
  });
  return failed;
}

void relieve_by_switches(Judgement& j, const Places& places) {
  Relief relief(j, places);
  relief.leave_out_partners(j);
  if (relief.any()) std::erase_if(j.found, [&](const Found& f) { return relief.explains(f); });
}

}  // namespace assay::verdict::network
