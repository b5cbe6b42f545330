// SPDX-License-Identifier: Apache-2.0
// The metrics of a suite, declared once for `assay list`, the limits, the results file and the verdict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/metric_spec.hpp"

namespace assay {

/// What one operation of a suite measures.
struct OperationMetrics {
  std::string operation;
  std::string cases;                         ///< pattern of its cases' names, for users: "<dtype>-n<N>"
  results::Judging judging;                  ///< of its metrics without own values
  std::vector<results::MetricSpec> metrics;  ///< from name to title; the rest is taken from above
};

/// A rate of storage (B/s) that is judged, and `<name>_cached`, which takes its place where caches served
/// more than 5 % of the bytes and which judges nothing (StorageMeter, measure/cold.hpp).
std::vector<results::MetricSpec> storage_rates(const std::string& name, const std::string& title,
                                               double typical = 0);

class Metrics {
 public:
  Metrics(std::initializer_list<OperationMetrics> operations);

  const std::vector<results::MetricSpec>& all() const noexcept { return all_; }
  /// Throws Error(internal) when the suite has declared no such metric.
  const results::MetricSpec& of(std::string_view operation, std::string_view name) const;

 private:
  std::vector<results::MetricSpec> all_;
};

}  // namespace assay
