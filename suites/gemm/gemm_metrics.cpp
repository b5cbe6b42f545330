// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_metrics.hpp"

#include "suite/gpu_bound.hpp"

namespace assay::gemm {

using results::Better;
using results::Judging;
using results::MetricClass;
using results::Role;

const Metrics& metrics() {
  // Power-limited chips differ by 7 % without a fault; at equal clock 3 % is one. Burn-in figures that were
  // published find the compute units bad least often, so the error budget gives them the least.
  const Judging compute{MetricClass::compute, 0.07, 0.5};
  static const Metrics all{
      {"product",
       "<dtype>-n<N>",
       compute,
       {{"throughput", "FLOP/s", Better::higher, true, Role::metric, true,
         "2 n^3 divided by the time of one multiplication"},
        {"efficiency", "1", Better::higher, false, Role::covariate, false,
         "median throughput as a fraction of this device's own FMA peak"},
        {"clock", "Hz", Better::none, false, Role::covariate, true,
         "GPUs: clock of the multiprocessors during each sample, as they count it themselves"},
        {"per_clock", "FLOP", Better::higher, false, Role::covariate, false,
         "GPUs: operations in one cycle of that clock, median"},
        {"power", "W", Better::none, false, Role::covariate, false,
         "GPUs: mean over the series and the checks within it, from the energy counter"},
        {"per_watt", "FLOP/J", Better::higher, false, Role::covariate, false,
         "GPUs: throughput divided by that power"},
        bound_share_spec()}},
      {"best",
       "<dtype>-best",
       compute,
       {{"throughput", "FLOP/s", Better::higher, true, Role::metric, true,
         "GPUs: the same for the fastest of a dozen shapes"}}},
      {"sustained",
       "<dtype>-sustained-n<N>",
       compute,
       {{"throughput", "FLOP/s", Better::higher, true, Role::metric, true, "the same over minutes"}}},
      {"peak",
       "<dtype>-peak",
       compute,
       {{"throughput", "FLOP/s", Better::higher, true, Role::metric, true,
         "multiply-adds in registers on all cores of the device"}}},
      {"exact",
       "<dtype>-exact-n512",
       compute,
       {{"errors", "count", Better::lower, true, Role::metric, true,
         "elements that differ from the exact integer result"}}},
  };
  return all;
}

}  // namespace assay::gemm
