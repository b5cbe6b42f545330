// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_metrics.hpp"

#include "workload/pair_selftest.hpp"

namespace assay::p2p {

using results::Better;
using results::Floor;
using results::Judging;
using results::MetricClass;
using results::Role;

const Metrics& metrics() {
  const Judging link{MetricClass::link, 0.05};
  const Judging rate{MetricClass::link, 0.05, 1, Floor::nic_rate};
  const results::MetricSpec round{"round",
                                  "count",
                                  Better::none,
                                  false,
                                  Role::covariate,
                                  false,
                                  "round of the schedule in which a sample was taken"};
  const results::MetricSpec repetitions{
      "repetitions", "count", Better::none, false, Role::covariate, false, "messages in one sample"};
  const results::MetricSpec bytes{"message_bytes",
                                  "B",
                                  Better::none,
                                  false,
                                  Role::covariate,
                                  false,
                                  "size of a message: as planned, or what a slow pair could end in its time"};
  const results::MetricSpec payload{"payload",
                                    "B",
                                    Better::none,
                                    false,
                                    Role::covariate,
                                    false,
                                    "bytes sent in all, checks and warm-up included"};
  static const Metrics all{
      {"latency",
       "latency",
       link,
       {{"latency", "s", Better::lower, true, Role::metric, true,
         "half the round trip of a small message, by direction of the first one"},
        round,
        payload,
        repetitions,
        bytes}},
      {"rate",
       "rate",
       link,
       {{"message_rate", "op/s", Better::higher, true, Role::metric, true,
         "small messages per second one way, 64 on their way at once"},
        round,
        payload,
        repetitions,
        bytes}},
      {"uni",
       "bandwidth-uni",
       rate,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes per second one way, until the receiver has them all"},
        round,
        payload,
        repetitions,
        bytes}},
      {"bi",
       "bandwidth-bi",
       rate,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes per second of one direction while both run"},
        round,
        payload,
        repetitions,
        bytes}},
      {"put",
       "bandwidth-put",
       rate,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes per second written into the memory of the other, until they are there"},
        round,
        payload,
        repetitions,
        bytes}},
      {"get",
       "bandwidth-get",
       rate,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes per second read from the memory of the other"},
        round,
        payload,
        repetitions,
        bytes}},
      {p2p::selftest_operation, "selftest-pair", link, {p2p::selftest_metric()}},
  };
  return all;
}

}  // namespace assay::p2p
