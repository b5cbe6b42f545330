// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay::verdict {

/// One [[limit]] table: exactly what was written, in base units.
struct Limit {
  std::string case_glob, metric;  ///< "gemm/fp32-*" and "throughput"
  std::string device = "*";       ///< glob on an entity's name or the model of its processor
  bool has_min = false, has_max = false;
  double min = 0, max = 0;
  std::string min_unit, max_unit, min_text, max_text;
  int line = 0;

  std::string full() const { return case_glob + ":" + metric; }
};

/// Parses TOML; throws Error(usage) "FILE:LINE: KEY: what" for anything but [[limit]] tables of known keys.
std::vector<Limit> parse_limits(const std::string& text, const std::string& name);

/// Whether a bound in `limit_unit` can be held against a metric in `metric_unit`.
bool same_unit(const std::string& limit_unit, const std::string& metric_unit);

}  // namespace assay::verdict
