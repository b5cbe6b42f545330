// SPDX-License-Identifier: Apache-2.0
// The metrics a synthetic cluster can have: the cases of the real suites, with their names, units and typical
// rates.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "results/model.hpp"

namespace assay::simulate {

/// Whom a metric is about.
enum class Subject { device, link, collective };

struct MetricModel {
  std::string suite, name;  ///< of the case
  std::string metric, unit;
  results::Better better = results::Better::higher;
  Subject subject = Subject::device;
  std::string stage;
  double typical = 1;  ///< value of a healthy entity
  double clock_slope = 0;  ///< power of the clock that the rate follows
  Json parameters = Json::object();

  std::string path() const { return suite + "/" + name + ":" + metric; }
};

/// All of them: device metrics first, then links, then collectives.
const std::vector<MetricModel>& catalogue();

/// The metrics that the items of a list name: a suite ("gemm"), a glob on suite/case:metric
/// ("memory/triad*"), or a number N, the first N device metrics. Throws Error(usage) naming an item that names
/// nothing.
std::vector<MetricModel> pick_metrics(const std::vector<std::string>& items);

}  // namespace assay::simulate
