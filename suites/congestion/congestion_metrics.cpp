// SPDX-License-Identifier: Apache-2.0
#include "suites/congestion/congestion_metrics.hpp"

#include "workload/pair_selftest.hpp"

namespace assay::congestion {

using results::Better;
using results::Floor;
using results::Judging;
using results::MetricClass;
using results::Role;
using results::SharedBy;

const Metrics& metrics() {
  // A congested rank is the victim of the others' traffic: a bound on it is one on the cluster.
  const Judging collective{MetricClass::collective, 0.03, 1, Floor::none, SharedBy::world};
  const std::vector<results::MetricSpec> impacts{
      {"congested", "count", Better::none, true, Role::covariate, true,
       "1 for samples taken while the other nodes flood the network"},
      {"impact_mean", "1", Better::lower, true, Role::metric, false,
       "how many times longer an operation takes while the other nodes flood the network: mean"},
      {"impact_p99", "1", Better::lower, true, Role::metric, false, "the same of the 99th percentile"}};
  const auto with = [&](results::MetricSpec first) {
    std::vector<results::MetricSpec> own{std::move(first)};
    own.insert(own.end(), impacts.begin(), impacts.end());
    return own;
  };
  static const Metrics all{
      {"latency", "latency", collective,
       with({"latency", "s", Better::lower, true, Role::covariate, true,
             "half the round trip of a small message"})},
      {"bandwidth", "bandwidth", collective,
       with({"bandwidth", "B/s", Better::higher, true, Role::covariate, true, "bytes per second one way"})},
      {"reduction", "allreduce", collective,
       with({"duration", "s", Better::lower, true, Role::covariate, true, "one all-reduce"})},
      {workload::selftest_operation, "selftest-pair", collective, {workload::selftest_metric()}},
  };
  return all;
}

}  // namespace assay::congestion
