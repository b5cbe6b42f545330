// SPDX-License-Identifier: Apache-2.0
#include "results/check_content.hpp"

#include <algorithm>
#include <cstdlib>

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

int minor_of(const std::string& version) {
  const auto dot = version.find('.');
  return dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
}

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
    if (!text.empty() && !parse_iso(text)) problems.push_back(where + ": \"" + text + "\" is no time");
  if (ends_before(started, ended))
    problems.push_back(where + " ended before it started: " + ended + " against " + started);
}

/// The first row whose samples decrease; -1 if there is none.
std::int32_t backward_row(const CaseData& c) {
  const std::size_t width = c.sample.size();
  for (std::size_t e = 0; e < c.entity.size(); ++e) {
    const std::size_t taken = std::min(width, static_cast<std::size_t>(std::max(0, c.count[e])));
    for (std::size_t s = 1; s < taken; ++s)
      if (c.t[e * width + s] < c.t[e * width + s - 1] - same_time_s) return c.entity[e];
  }
  return -1;
}

}  // namespace

void check_words(const Results& r, const std::string& schema_version) {
  if (minor_of(schema_version) > minor_of(Schema::get().version)) return;
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
  for (const CaseData& c : r.cases) {
    const std::string where = "/cases/" + c.path();
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
    const std::int32_t row = backward_row(c);
    if (row >= 0 && static_cast<std::size_t>(row) < r.entities.size())
      out.push_back(where + "/t: the samples of " + r.entities[static_cast<std::size_t>(row)].name +
                    " decrease");
  }
  return out;
}

}  // namespace assay::results
