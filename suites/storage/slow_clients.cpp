// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/slow_clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.hpp"
#include "measure/cold.hpp"
#include "measure/statistics.hpp"

namespace assay::storage {
namespace {

double median_of_others(const std::vector<double>& rates, std::size_t without) {
  std::vector<double> others;
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (i != without && !std::isnan(rates[i])) others.push_back(rates[i]);
  return others.empty() ? results::not_taken : median(others);
}

double rate_of(const CaseRecord::Row* row) {
  if (row == nullptr || !row->values.contains("bandwidth_cached")) return results::not_taken;
  const bool uncounted = std::isnan(row->values.at("moved_share").front());
  const bool from_cache = row->values.at("resident_share").front() > 1 - least_moved_share;
  return uncounted && !from_cache ? median(row->values.at("bandwidth_cached")) : results::not_taken;
}

}  // namespace

std::vector<std::size_t> slow_clients(const std::vector<double>& rates) {
  std::vector<std::size_t> slow;
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (rates[i] * uncounted_factor < median_of_others(rates, i)) slow.push_back(i);
  return slow;
}

void tell_slow_client(const CaseRecord::Row* row, const std::string& where, const Case& c, Context& context) {
  if (context.leaders == nullptr) return;
  const double mine = rate_of(row);
  std::vector<double> rates(static_cast<std::size_t>(context.leaders->size()));
  context.leaders->all_gather(&mine, rates.data(), sizeof mine);
  const auto me = static_cast<std::size_t>(context.leaders->rank());
  const auto slow = slow_clients(rates);
  if (std::find(slow.begin(), slow.end(), me) == slow.end()) return;
  context.record.launch_event(
      "warn", "mismatch",
      fmt::format("{}: {} in {}, {:.2g} times slower than other nodes ({}): no counter shows the bytes "
                  "stored; caches are an unlikely cause",
                  where, format_quantity(mine, "B/s"), c.path(), median_of_others(rates, me) / mine,
                  format_quantity(median_of_others(rates, me), "B/s")),
      context.entities.node(context.topology.me().node));
}

}  // namespace assay::storage
