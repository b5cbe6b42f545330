// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/step_cost.hpp"

#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "measure/robust.hpp"
#include "measure/statistics.hpp"

namespace assay::storage {

StepCost step_cost(std::span<const std::vector<double>> alone, std::span<const std::vector<double>> during) {
  if (alone.size() != during.size() + 1 || during.empty())
    throw Error(ErrorKind::internal, "rounds of steps do not alternate");
  std::vector<double> logs;
  for (std::size_t i = 0; i < during.size(); ++i)
    logs.push_back(std::log(median(during[i])) -
                   (std::log(median(alone[i])) + std::log(median(alone[i + 1]))) / 2);
  const double n = as_double(logs.size());
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / n;
  double half = std::nan("");
  // Neighbouring rounds share the steps between them: with equal noise in all series, a correlation of 1/6.
  const double shared = (1 + (n - 1) / (3 * n)) / (1 - 1 / (3 * n));
  if (logs.size() > 1) half = t_quantile(0.975, n - 1) * standard_deviation(logs) * std::sqrt(shared / n);
  return {std::expm1(mean), std::expm1(mean - half), std::expm1(mean + half)};
}

}  // namespace assay::storage
