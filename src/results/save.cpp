// SPDX-License-Identifier: Apache-2.0
#include "results/save.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "results/writer.hpp"

namespace assay::results {
namespace {

/// Rows of a table that belong to cases, by the case they are stored with; those of no stored case go to the first.
template <class Row>
std::map<std::string, std::vector<Row>> by_case(const Results& results, const std::vector<Row>& rows) {
  std::map<std::string, std::vector<Row>> out;
  for (const Row& row : rows) {
    const bool known = std::any_of(results.cases.begin(), results.cases.end(),
                                   [&](const CaseData& c) { return c.path() == row.case_path; });
    out[known || results.cases.empty() ? row.case_path : results.cases.front().path()].push_back(row);
  }
  return out;
}

}  // namespace

void save(const Results& results, const std::filesystem::path& file, bool force) {
  Writer::Start start{results.info,        results.config,   results.plan,
                      results.environment, results.entities, results.inventory};
  start.info.state = "running";
  Writer writer = Writer::create(file, start, force);
  try {
    auto errors = by_case(results, results.errors);
    auto counters = by_case(results, results.counters);
    for (const EventRow& event : results.events) writer.add_event(event);
    for (const CaseData& data : results.cases) {
      CaseBundle bundle;
      bundle.data = data;
      bundle.errors = std::move(errors[data.path()]);
      bundle.counters = std::move(counters[data.path()]);
      if (&data == &results.cases.front()) {
        bundle.selftest = results.selftest;
        bundle.telemetry = results.telemetry;
        bundle.flags = results.flags;
      }
      writer.add_case(bundle);
    }
    writer.finish(results.verdict.value_or(VerdictData{}), results.info.state);
  } catch (const Error&) {
    writer.discard();
    throw;
  }
}

}  // namespace assay::results
