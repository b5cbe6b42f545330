// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/memory_metrics.hpp"

#include "suite/gpu_bound.hpp"

namespace assay::memory {

using results::Better;
using results::Judging;
using results::MetricClass;
using results::Role;

const Metrics& metrics() {
  // Memory and its paths are found bad more often than other parts.
  const Judging memory{MetricClass::memory, 0.03, 2};
  static const Metrics all{
      {"stream",
       "<operation>",
       memory,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes of the operation divided by the time (as STREAM counts)"},
        bound_share_spec()}},
      {"latency",
       "latency",
       memory,
       {{"latency", "s", Better::lower, true, Role::metric, true,
         "time of one dependent load in a random cycle beyond the caches"}}},
      {"pattern",
       "pattern-<name>",
       memory,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes read and written by each sweep, divided by its time"},
        {"errors", "count", Better::lower, true, Role::metric, false, "words with a wrong value"},
        {"coverage", "1", Better::higher, true, Role::metric, false,
         "verifying sweeps done / planned, times the share of the planned region that was tested"},
        {"efficiency", "1", Better::higher, false, Role::covariate, false,
         "median bandwidth as a fraction of a copy of the same region; GPUs: of what copy-together measured "
         "in this run"},
        {"own_bandwidth", "B/s", Better::higher, false, Role::covariate, false,
         "reference bandwidth for `efficiency` (GPUs)"},
        bound_share_spec()}},
      {"selftest",
       "selftest-memory",
       memory,
       {{"detected", "count", Better::none, true, Role::covariate, true,
         "changed words found by the check of the patterns (one was changed)"}}},
      {"onchip",
       "onchip-<memory>",
       memory,
       {{"errors", "count", Better::lower, true, Role::metric, false,
         "words of L1 caches, shared memory or the L2 cache that were wrong (GPUs)"},
        {"coverage", "1", Better::higher, true, Role::metric, false,
         "share of the multiprocessors that ran the test (GPUs)"},
        {"multiprocessors", "count", Better::none, false, Role::covariate, false,
         "multiprocessors that ran the test (GPUs)"}}},
      {"copy",
       "h2d, d2h, hd-both, h2d-sm, d2h-sm, local",
       memory,
       {{"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "bytes copied between pinned host memory and the GPU, or read and written by a copy inside the GPU, "
         "divided by the time (GPUs)"},
        bound_share_spec()}},
  };
  return all;
}

}  // namespace assay::memory
