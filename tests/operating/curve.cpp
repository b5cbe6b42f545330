// SPDX-License-Identifier: Apache-2.0
#include "curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <mutex>
#include <thread>

namespace assay::operating {
namespace {

constexpr double doubt = 0.05;

std::string percent(double share) {
  return share > 0 && share < 0.001 ? fmt::format("{:.4f} %", 100 * share)
                                    : fmt::format("{:.2f} %", 100 * share);
}

}  // namespace

double lower_bound(const Count& count) {
  if (count.trials == 0 || count.hits == 0) return 0;
  return boost::math::binomial_distribution<>::find_lower_bound_on_p(static_cast<double>(count.trials),
                                                                     static_cast<double>(count.hits), doubt);
}

double upper_bound(const Count& count) {
  if (count.trials == 0 || count.hits == count.trials) return 1;
  return boost::math::binomial_distribution<>::find_upper_bound_on_p(static_cast<double>(count.trials),
                                                                     static_cast<double>(count.hits), doubt);
}

bool Result::met() const noexcept {
  const double share = count.share();
  if (cell->aim == Aim::at_most) return share <= cell->target;
  if (cell->aim == Aim::at_least) return share >= cell->target;
  return share >= cell->target && share <= cell->target_high;
}

bool Result::met_clearly() const noexcept {
  const double n = static_cast<double>(count.trials),
               share = (static_cast<double>(count.hits) + 0.5) / (n + 1);
  const double margin = 3 * std::sqrt(share * (1 - share) / (n + 1));
  const bool low = share - margin >= cell->target,
             high = share + margin <= (cell->aim == Aim::at_most ? cell->target : cell->target_high);
  if (cell->aim == Aim::between) return low && high;
  return cell->aim == Aim::at_most ? high : low;
}

bool Result::failed() const {
  const double target = cell->held_to.value_or(cell->target);
  if (cell->aim == Aim::at_most) return lower_bound(count) > target;
  if (upper_bound(count) < target) return true;
  return cell->aim == Aim::between && lower_bound(count) > cell->target_high;
}

bool Result::could_fail() const {
  Result wrong = *this;
  wrong.count.hits = cell->aim == Aim::at_most ? count.trials : 0;
  return wrong.failed();
}

std::vector<Result> measure(const std::vector<Cell>& cells, double scale, unsigned threads,
                            std::uint64_t first_seed, std::size_t least) {
  std::vector<Result> results;
  std::vector<std::pair<std::size_t, std::uint64_t>> jobs;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    results.push_back({&cells[c], {}});
    const auto runs =
        std::max(least, static_cast<std::size_t>(std::lround(scale * static_cast<double>(cells[c].runs))));
    for (std::size_t r = 0; r < runs; ++r) jobs.emplace_back(c, first_seed + r);
  }
  std::atomic<std::size_t> next{0};
  std::mutex lock;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs.size(); j = next++) {
      try {
        const Count count = cells[jobs[j].first].trial(jobs[j].second);
        const std::lock_guard guard(lock);
        results[jobs[j].first].count.hits += count.hits;
        results[jobs[j].first].count.trials += count.trials;
      } catch (...) {
        const std::lock_guard guard(lock);
        failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < std::max(1U, threads); ++t) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
  return results;
}

std::string table_head() {
  return "| what | fleet | target | measured | of | 95 % bound | |\n|---|---|---|---|---|---|---|\n";
}

std::string row_of(const Result& result) {
  const Cell& cell = *result.cell;
  std::string target, bound;
  switch (cell.aim) {
    case Aim::at_most:
      target = "≤" + percent(cell.target);
      bound = "≤" + percent(upper_bound(result.count));
      break;
    case Aim::at_least:
      target = "≥" + percent(cell.target);
      bound = "≥" + percent(lower_bound(result.count));
      break;
    case Aim::between:
      target = percent(cell.target) + " to " + percent(cell.target_high);
      bound = percent(lower_bound(result.count)) + " to " + percent(upper_bound(result.count));
      break;
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", cell.group, cell.name, target,
                     percent(result.count.share()), result.count.trials, bound,
                     fmt::format("{}{}",
                                 !result.met()          ? "**missed**"
                                 : result.met_clearly() ? "met by 3 errors"
                                                        : "met",
                                 cell.held_to ? ", held to " + percent(*cell.held_to) : ", held"));
}

std::vector<Cell> all_cells() {
  std::vector<Cell> all;
  for (auto&& cells : {healthy_cells(), family_cells(), group_cells(), recall_cells(), network_cells(),
                       history_cells(), lasting_cells(), comparison_cells(), visible_cells(), dips_cells()})
    all.insert(all.end(), cells.begin(), cells.end());
  return all;
}

}  // namespace assay::operating
