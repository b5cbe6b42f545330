// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "results/metric_spec.hpp"
#include "suite/suite.hpp"
#include "topology/gpu_bounds.hpp"

namespace assay {

/// What a GPU reaches of its physical bound. The suite lists `bound_share` among the metrics of the
/// operation.
inline results::MetricSpec bound_share_spec() {
  return {"bound_share",
          "1",
          results::Better::higher,
          false,
          results::Role::covariate,
          false,
          "GPUs: median rate as a fraction of what clock, width and architecture allow (parameter bound)"};
}

/// The GPU that this rank measures by itself; one of which nothing is known for host devices and shared GPUs.
Gpu own_gpu(const RankEnvironment& environment);

/// Declares `bound_share` and stores what bounds the case. The rate of the case is judged against it where
/// its declaration has the floor `gpu_bound`.
void declare_bound(const results::MetricSpec& share, const GpuBound& bound, CaseRecord& record);
/// Of a part of a case between GPUs: none where another bound holds for it than for the case.
GpuBound part_bound(const GpuBound& of_case, const GpuBound& part);
/// NaN where the bound is not known.
void add_bound_share(CaseRecord::Row& row, const std::string& rate, const GpuBound& bound);

}  // namespace assay
