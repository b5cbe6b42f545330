// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burn_metrics.hpp"

namespace assay::burn {

using results::Better;
using results::Judging;
using results::Role;

const Metrics& metrics() {
  const Judging other{};
  static const Metrics all{
      {"mixed",
       "mixed",
       other,
       {{"throughput", "FLOP/s", Better::higher, true, Role::metric, true,
         "products under the load of all parts, per window of time"},
        {"bandwidth", "B/s", Better::higher, true, Role::metric, true,
         "memory verified and rewritten meanwhile"},
        {"busbw", "B/s", Better::higher, true, Role::metric, true, "all-reduce among all ranks meanwhile"},
        {"host_throughput", "FLOP/s", Better::higher, true, Role::metric, true,
         "products of the host beside its GPUs meanwhile"},
        {"errors", "count", Better::lower, true, Role::metric, false, "wrong results of all parts"},
        {"power", "W", Better::none, false, Role::covariate, false,
         "mean while all burn, from the energy counter of the GPU or of the processors"}}},
      {"pulse",
       "pulse-<N>ms-d<N>",
       other,
       {{"throughput", "FLOP/s", Better::higher, false, Role::metric, true,
         "products in the high phase of a full pulse; none if the device was too late"},
        {"lag", "s", Better::lower, true, Role::covariate, true,
         "delay from the planned start to the first work"},
        {"power_high", "W", Better::none, false, Role::covariate, false,
         "mean power in the high phases, less their edges"},
        {"power_low", "W", Better::none, false, Role::covariate, false,
         "mean power in the low phases, less their edges"},
        {"power_swing", "W", Better::none, false, Role::covariate, false, "the difference of these two"},
        {"errors", "count", Better::lower, true, Role::metric, false, "wrong results of all pulses"}}},
  };
  return all;
}

}  // namespace assay::burn
