// SPDX-License-Identifier: Apache-2.0
// The samples that a case took of one row, and their blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "results/model.hpp"

namespace assay::verdict {

struct TakenSample {
  double value = 0;
  double t = results::not_taken;  ///< seconds since the run's start, where recorded
  std::int32_t block = 0;         ///< below 0: the case records none, each sample is one of its own
};
/// In order, as statistics take them and without NaN; of a metric with one value a row, that one.
std::vector<TakenSample> samples_of(const results::CaseData& c, const results::Metric& m, std::size_t row);
std::vector<double> values_of(const std::vector<TakenSample>& samples);

struct SampleBlock {
  double median = 0;
  double first_t = results::not_taken, last_t = results::not_taken;
};
std::vector<SampleBlock> blocks_of(const std::vector<TakenSample>& samples);

}  // namespace assay::verdict
