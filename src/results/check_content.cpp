// SPDX-License-Identifier: Apache-2.0
#include "results/check_content.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "results/iso_time.hpp"
#include "results/schema.hpp"
#include "results/schema_model.hpp"

namespace assay::results {
namespace {

constexpr std::int32_t most_blocks = 1'000'000;
constexpr double same_time_s =
    1e-3;  ///< samples of one part follow each other; so much may clocks be read in another order

void check_unit(const std::string& unit, const std::string& where) {
  if (!is_unit(unit)) throw Error(ErrorKind::data, "unknown unit \"" + unit + "\" of " + where);
}

void check_kind(const std::vector<Json>& kinds, const std::string& kind, const std::string& where) {
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    throw Error(ErrorKind::data, "unknown kind \"" + kind + "\" of " + where);
}

bool ends_before(const std::string& started, const std::string& ended) {
  const auto begin = unix_seconds(started), end = unix_seconds(ended);
  return begin && end && *end < *begin;
}

void check_time(const std::string& where, const std::string& started, const std::string& ended,
                std::vector<std::string>& problems) {
  for (const std::string& text : {started, ended})
    if (!text.empty() && !parse_iso(text))
      problems.push_back(where + ": \"" + text + "\" is not a valid ISO 8601 time");
  if (ends_before(started, ended))
    problems.push_back(where + " ended before it started: " + ended + " against " + started);
}

/// Beyond it a number does not tell milliseconds apart, and what is later would be unknown.
constexpr double most_seconds = 1e12;

template <class T>
std::optional<T> told_twice(std::vector<T> values) {
  if (std::ranges::adjacent_find(values, std::greater_equal<>()) == values.end()) return {};
  std::ranges::sort(values);
  const auto at = std::ranges::adjacent_find(values);
  return at == values.end() ? std::optional<T>() : *at;
}

/// Parts are told apart by their kind and id, and what a rank says is about the one that it drives.
void check_identities(const std::vector<Entity>& entities, std::vector<std::string>& problems) {
  std::vector<std::pair<std::string_view, std::string_view>> ids;
  std::vector<std::pair<std::string_view, std::int32_t>> ranks;
  for (const Entity& e : entities) {
    ids.emplace_back(e.kind, e.id);
    if (e.rank >= 0) ranks.emplace_back(e.kind, e.rank);
  }
  if (const auto id = told_twice(std::move(ids)))
    problems.push_back("/entities/id: two parts of kind " + std::string(id->first) + " are \"" +
                       std::string(id->second) + "\"");
  if (const auto rank = told_twice(std::move(ranks)))
    problems.push_back("/entities/rank: two parts of kind " + std::string(rank->first) +
                       " are driven by rank " + std::to_string(rank->second));
}

/// How many samples of row `e` were taken.
std::size_t taken_of(const CaseData& c, std::size_t e) {
  return std::min(c.sample.size(), static_cast<std::size_t>(std::max(0, c.count[e])));
}

/// The first row with a taken sample whose time is none; -1 if there is none.
std::int32_t timeless_row(const CaseData& c) {
  const auto t = c.t.held();
  for (std::size_t e = 0; e < c.entity.size(); ++e)
    for (std::size_t s = 0; s < taken_of(c, e); ++s)
      if (!(std::abs(t[e * c.sample.size() + s]) <= most_seconds)) return c.entity[e];
  return -1;
}

/// The first row whose samples decrease; -1 if there is none.
std::int32_t backward_row(const CaseData& c) {
  const std::size_t width = c.sample.size();
  const auto t = c.t.held();
  for (std::size_t e = 0; e < c.entity.size(); ++e) {
    for (std::size_t s = 1; s < taken_of(c, e); ++s)
      if (t[e * width + s] < t[e * width + s - 1] - same_time_s) return c.entity[e];
  }
  return -1;
}

}  // namespace

void check_words(const Results& r, const std::string& schema_version) {
  if (Schema::get().is_later(schema_version)) return;
  const std::vector<Json>& kinds = Schema::get().values.at("entity_kind");
  for (std::size_t i = 0; i < r.entities.size(); ++i)
    check_kind(kinds, r.entities[i].kind, "row " + std::to_string(i) + " of /entities");
  for (const CaseData& c : r.cases) {
    if (!c.kind.empty()) check_kind(kinds, c.kind, "/cases/" + c.path());
    for (const Metric& m : c.metrics) check_unit(m.unit, "/cases/" + c.path() + "/" + m.name);
  }
  for (const auto& [kind, table] : r.inventory)
    for (const auto& [column, unit] : table.unit) check_unit(unit, "/inventory/" + kind + "/" + column);
}

std::vector<std::string> doubtful_content(const Results& r) {
  std::vector<std::string> out;
  check_time("the run", r.info.started, r.info.ended, out);
  for (std::size_t i = 0; i < r.entities.size(); ++i)
    if (r.entities[i].name.empty()) out.push_back("row " + std::to_string(i) + " of /entities/name is empty");
  check_identities(r.entities, out);
  const auto name_of = [&](std::int32_t row) {
    const auto at = static_cast<std::size_t>(row);
    return at < r.entities.size() ? r.entities[at].name : "row " + std::to_string(row);
  };
  for (const CaseData& c : r.cases) {
    const std::string where = "/cases/" + c.path();
    if (const auto row = told_twice(c.entity)) out.push_back(where + "/entity: duplicate " + name_of(*row));
    if (const auto number = told_twice(c.sample))
      out.push_back(where + "/sample: duplicate " + std::to_string(*number));
    check_time(where, c.started, c.ended, out);
    for (const double s : {c.shares.wall_s, c.shares.warmup_s, c.shares.timed_s, c.shares.verify_s})
      if (s < 0) out.push_back(where + ": " + std::to_string(s) + " s is no length of time");
    if (const auto least = std::ranges::min_element(c.sample); least != c.sample.end() && *least < 0)
      out.push_back(where + "/sample: " + std::to_string(*least) + " is no number of a sample");
    const auto block =
        std::find_if(c.block.begin(), c.block.end(), [](std::int32_t b) { return b < 0 || b > most_blocks; });
    if (block != c.block.end())
      out.push_back(where + "/block: " + std::to_string(*block) + " is no number of a block");
    if (c.count.size() != c.entity.size() || c.t.size() != c.entity.size() * c.sample.size()) continue;
    if (const std::int32_t row = timeless_row(c); row >= 0)
      out.push_back(where + "/t: a time of " + name_of(row) + " is not finite or beyond 1e12 s");
    if (const std::int32_t row = backward_row(c); row >= 0)
      out.push_back(where + "/t: the samples of " + name_of(row) + " decrease");
  }
  return out;
}

std::vector<std::string> broken_samples(const Results& r) {
  std::vector<std::string> out;
  for (const CaseData& c : r.cases) {
    if (c.state != CaseState::pass && c.state != CaseState::fail) continue;
    for (const Metric& m : c.metrics) {
      if (!m.required || !m.per_sample || c.count.size() != c.entity.size()) continue;
      const auto values = m.values.held();
      for (std::size_t e = 0; e < c.entity.size(); ++e) {
        const std::size_t taken = taken_of(c, e);
        const auto begin = values.begin() + static_cast<std::ptrdiff_t>(e * c.sample.size());
        const auto numbers = static_cast<std::size_t>(std::count_if(
            begin, begin + static_cast<std::ptrdiff_t>(taken), [](double v) { return std::isfinite(v); }));
        if (numbers == 0 || numbers == taken) continue;  // none at all: this part does not tell the metric
        out.push_back("/cases/" + c.path() + "/" + m.name + ": " + std::to_string(taken - numbers) +
                      " taken samples of " + r.entities[static_cast<std::size_t>(c.entity[e])].name +
                      " are no finite numbers");
        break;
      }
    }
  }
  return out;
}

}  // namespace assay::results
