// SPDX-License-Identifier: Apache-2.0
#include "suites/allreduce/allreduce_metrics.hpp"

#include "suite/gpu_bound.hpp"

namespace assay::allreduce {

using results::Better;
using results::Judging;
using results::MetricClass;
using results::Role;

const Metrics& metrics() {
  // By whom a value is shared the case says: the ranks of a node, of a group, or all.
  const Judging collective{MetricClass::collective};
  Judging own_time = collective;
  own_time.in_step = true;
  const results::MetricSpec duration{
      "duration", "s", Better::lower, true, Role::metric, true, "one operation, as this rank saw it",
      own_time};
  const results::MetricSpec group{"group",
                                  "count",
                                  Better::none,
                                  false,
                                  Role::covariate,
                                  true,
                                  "1,000,000 x draw + number of the group that a sample was taken in"};
  const results::MetricSpec repetitions{
      "repetitions", "count", Better::none, false, Role::covariate, false, "operations in one sample"};
  const results::MetricSpec bytes{
      "message_bytes",
      "B",
      Better::none,
      false,
      Role::covariate,
      false,
      "size of the vector: as planned, or what a slow group could end in its time"};
  static const Metrics all{
      {"pipelined",
       "allreduce",
       collective,
       {duration,
        {"busbw", "B/s", Better::higher, true, Role::metric, true,
         "algbw x 2(n-1)/n: comparable between rank counts"},
        bound_share_spec(),
        {"algbw", "B/s", Better::higher, true, Role::covariate, true, "size over time"},
        repetitions,
        bytes,
        group}},
      {"isolated",
       "allreduce-isolated",
       collective,
       {duration,
        {"arrival_skew", "s", Better::lower, true, Role::covariate, true,
         "how much later than the first this rank entered"},
        repetitions,
        bytes,
        group}},
      {"selftest",
       "selftest-allreduce",
       collective,
       {{"detected", "count", Better::none, true, Role::covariate, true,
         "corrupted elements found by the check (one was corrupted)"}}},
  };
  return all;
}

}  // namespace assay::allreduce
