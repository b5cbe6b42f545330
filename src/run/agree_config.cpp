// SPDX-License-Identifier: Apache-2.0
#include "run/agree_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "results/resume.hpp"
#include "run/fault_plan.hpp"
#include "run/file_start.hpp"
#include "transport/agree.hpp"

namespace assay {
namespace {

constexpr std::uint64_t step_bytes = std::uint64_t{16} << 20;  ///< of the memory that is agreed on

/// Paths, sorted.
std::vector<std::string> required_cases(const Plan& plan) {
  std::vector<std::string> out;
  for (const Case& c : plan.cases)
    if (c.required && c.not_applicable.empty()) out.push_back(c.path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

double agree_seed(Communicator& world, Config& config) {
  Json mine = Json::object();
  together(world, [&] {
    if (world.rank() != 0) return;
    mine = {{"seed", 0}, {"given", config.seed_given}, {"memory_bytes", 0}, {"elapsed", 0.0}};
    if (config.resume.empty()) {
      mine["seed"] = seed_of(config);
      return;
    }
    const auto resumed = results::read_resume(config.resume);
    if (config.seed_given && config.seed != resumed.info.seed)
      throw_usage(
          fmt::format("--seed {}: the run to resume has the seed {}", config.seed, resumed.info.seed));
    mine = {{"seed", resumed.info.seed},
            {"given", resumed.seed_given},
            {"memory_bytes", resumed.memory_per_rank_bytes},
            {"elapsed", resumed.elapsed_s}};
  });
  const Json agreed = Json::parse(world.broadcast_text(mine.dump(), 0));
  config.seed = agreed.at("seed");
  config.seed_given = agreed.at("given");
  config.agreed_memory_bytes = agreed.at("memory_bytes");
  return agreed.at("elapsed");
}

double memory_seconds(const Config& config) noexcept {
  constexpr double of_smoke = 0.4, of_quick = 0.2;
  if (config.level > Level::quick) return std::numeric_limits<double>::infinity();
  return config.budget_s() * (config.level == Level::smoke ? of_smoke : of_quick);
}

std::uint64_t memory_in_time(std::vector<std::uint64_t> touched) {
  constexpr std::uint64_t far = 4;  // times slower than most: a fault, which takes no memory from the others
  std::sort(touched.begin(), touched.end());
  const std::uint64_t median = touched[touched.size() / 2];
  const auto least = std::lower_bound(touched.begin(), touched.end(), median / far);
  return std::max(least_memory_bytes, *least / step_bytes * step_bytes);
}

std::optional<std::uint64_t> agree_memory(Communicator& world, std::uint64_t mine, const Plan& plan) {
  std::vector<std::uint64_t> touched(static_cast<std::size_t>(world.size()));
  world.all_gather(&mine, touched.data(), sizeof mine);
  // What is left of the last step is there in no time.
  const std::uint64_t in_time = memory_in_time(std::move(touched));
  if (in_time + step_bytes > plan.arena_bytes) return {};
  return in_time;
}

std::optional<LimitedPlan> limited_plan(const Config& config, const Topology& topology,
                                        const std::vector<std::unique_ptr<Suite>>& suites, const Plan& whole,
                                        std::uint64_t bytes) {
  Config with_less = config;
  with_less.agreed_memory_bytes = bytes;
  LimitedPlan out;
  try {
    out.plan = make_plan(with_less, topology, suites);
    check_faults(config.faults, out.plan, topology, suites);
  } catch (const Error&) {
    return {};
  }
  const std::vector<std::string> before = required_cases(whole), now = required_cases(out.plan);
  std::vector<std::string> gone;
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(gone));
  LaunchExpectations expect;
  expect.devices = config.expect_devices;
  out.finding = {gone.empty() ? "info" : expect.severity_of_uncovered(), "uncovered",
                 fmt::format("cases use {} of memory per rank instead of {}: the system gave out no more "
                             "within {}{}{}",
                             format_bytes(bytes), format_bytes(whole.arena_bytes),
                             format_seconds(memory_seconds(config)),
                             gone.empty() ? "" : "; required and not measured: ", fmt::join(gone, ", "))};
  return out;
}

}  // namespace assay
