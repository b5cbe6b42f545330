// SPDX-License-Identifier: Apache-2.0
// The few numbers of a case that a row of text shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::report {

/// Name of an entity; for links without a row of their own, source>destination.
std::string entity_name(const results::Results& results, const results::CaseData& c, std::size_t row);
std::string entity_name(const results::Results& results, std::int32_t row);

/// Median of the samples of each row of a metric; NaN without any.
std::vector<double> row_medians(const results::CaseData& c, const results::Metric& m);

/// One metric of one case over its entities.
struct MetricSummary {
  const results::CaseData* data = nullptr;
  const results::Metric* metric = nullptr;
  double median = results::not_taken;  ///< of the entities' medians
  double spread =
      results::not_taken;  ///< robust sigma over entities (over samples when there is one), relative
  std::int64_t n = 0;      ///< samples of all entities
  std::size_t entities = 0;
  std::string worst;         ///< name
  std::size_t infinite = 0;  ///< entities with infinite samples that no median can have
  std::string first_infinite;
  double worst_deficit = results::not_taken;
};
/// Deficit of the worst part in the newest retest of its case, against the median of the other parts there
/// (of the case itself, if there are none); NaN where it was not measured again.
double deficit_again(const results::Results& results, const MetricSummary& d);
MetricSummary summarize(const results::Results& results, const results::CaseData& c,
                        const results::Metric& m);

/// Self-tests of all parts together, by checker.
std::map<std::string, results::SelftestRow> selftest_sums(const results::Results& results);

/// The metric a case is known by: the first with a direction that is no covariate; nullptr if there is none.
const results::Metric* headline(const results::CaseData& c);

/// Of a case that slow parts ran with less than its `bytes`: "size reduced to 128 KiB to fit the time", of
/// how many parts, and that a time was extrapolated. Empty of others.
std::string reduced_words(const results::CaseData& c, const results::Metric& headline);

/// The name of a link, with the node said once where both ends are in it: "vm/cores0>cores1".
std::string short_link(std::string name);

}  // namespace assay::report
