// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/p2p_metrics.hpp"

#include <utility>

#include "suite/gpu_bound.hpp"
#include "workload/pair_selftest.hpp"

namespace assay::p2p {

using results::Better;
using results::Floor;
using results::Judging;
using results::MetricClass;
using results::Role;

namespace {

/// What explains every sample of a pair.
results::MetricSpec covariate(const char* name, const char* unit, const char* title) {
  return {name, unit, Better::none, false, Role::covariate, false, title};
}

OperationMetrics of_pairs(const char* operation, const char* cases, const Judging& judging,
                          results::MetricSpec metric) {
  return {
      operation,
      cases,
      judging,
      {std::move(metric), covariate("round", "count", "round of the schedule in which a sample was taken"),
       covariate("payload", "B", "bytes sent in all, checks and warm-up included"),
       covariate("repetitions", "count", "messages in one sample"),
       covariate("message_bytes", "B",
                 "size of a message: as planned, or what a slow pair could end in its time")}};
}

OperationMetrics with_bound(OperationMetrics operation) {
  operation.metrics.push_back(bound_share_spec());
  return operation;
}

results::MetricSpec bandwidth(const char* title) {
  return {"bandwidth", "B/s", Better::higher, true, Role::metric, true, title};
}

/// Cases are named by the operation.
OperationMetrics star(const char* operation, const char* title) {
  return {operation,
          operation,
          {MetricClass::link, 0.05},
          {bandwidth(title), bound_share_spec(),
           covariate("repetitions", "count", "times that all messages were written in one sample"),
           covariate("message_bytes", "B",
                     "size of a message: as planned, or what a slow GPU could end in its time")}};
}

}  // namespace

const Metrics& metrics() {
  const Judging link{MetricClass::link, 0.05};
  const Judging rate{MetricClass::link, 0.05, 1, Floor::nic_rate};
  static const Metrics all{
      of_pairs("latency", "latency", link,
               {"latency", "s", Better::lower, true, Role::metric, true,
                "half the round trip of a small message, by direction of the first one"}),
      of_pairs("rate", "rate", link,
               {"message_rate", "op/s", Better::higher, true, Role::metric, true,
                "small messages per second one way, 64 on their way at once"}),
      with_bound(of_pairs("uni", "bandwidth-uni", rate,
                          bandwidth("bytes per second one way, until the receiver has them all"))),
      with_bound(of_pairs("bi", "bandwidth-bi", rate,
                          bandwidth("bytes per second of one direction while both run"))),
      with_bound(
          of_pairs("put", "bandwidth-put", rate,
                   bandwidth("bytes per second written into the memory of the other, until they are there"))),
      with_bound(of_pairs("get", "bandwidth-get", rate,
                          bandwidth("bytes per second read from the memory of the other"))),
      with_bound(of_pairs("put-bi", "bandwidth-put-bi", rate,
                          bandwidth("bytes per second of one direction while both write to the other"))),
      with_bound(of_pairs("get-bi", "bandwidth-get-bi", rate,
                          bandwidth("bytes per second of one direction while both read from the other"))),
      of_pairs("chase", "chase", link,
               {"latency", "s", Better::lower, true, Role::metric, true,
                "one load of a GPU's thread from the memory of the other, after the one before, by the GPU's "
                "clock"}),
      star("one-to-all", "bytes per second that a GPU writes to all others of its node at once"),
      star("all-to-one", "bytes per second that all other GPUs of a node write to one at once"),
      {p2p::selftest_operation, "selftest-pair", link, {p2p::selftest_metric()}},
  };
  return all;
}

}  // namespace assay::p2p
