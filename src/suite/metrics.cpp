// SPDX-License-Identifier: Apache-2.0
#include "suite/metrics.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace assay {

std::vector<results::MetricSpec> storage_rates(const std::string& name, const std::string& title,
                                               double typical) {
  using results::Better;
  using results::Role;
  results::MetricSpec judged{name, "B/s", Better::higher, false, Role::metric, true, title};
  judged.typical = typical;
  return {judged,
          {name + "_cached", "B/s", Better::higher, false, Role::covariate, true,
           "the same where less than 95 % of the bytes reached the storage: a rate of caches"}};
}

Metrics::Metrics(std::initializer_list<OperationMetrics> operations) {
  for (const OperationMetrics& operation : operations) {
    for (results::MetricSpec m : operation.metrics) {
      m.operation = operation.operation;
      m.cases = operation.cases;
      if (!m.judging) m.judging = operation.judging;
      all_.push_back(std::move(m));
    }
  }
}

const results::MetricSpec& Metrics::of(std::string_view operation, std::string_view name) const {
  const auto at = std::find_if(all_.begin(), all_.end(),
                               [&](const auto& m) { return m.operation == operation && m.name == name; });
  if (at == all_.end())
    throw Error(ErrorKind::internal, std::string(operation) + " declares no metric " + std::string(name));
  return *at;
}

}  // namespace assay
