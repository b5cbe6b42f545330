// SPDX-License-Identifier: Apache-2.0
#include "run/agree_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/units.hpp"
#include "results/resume.hpp"
#include "run/agree.hpp"
#include "run/file_start.hpp"

namespace assay {
namespace {

constexpr std::uint64_t step_bytes = std::uint64_t{16} << 20;  ///< of the memory that is agreed on

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

std::optional<LaunchFinding> agree_memory(Communicator& world, std::uint64_t mine, const Plan& plan,
                                          Config& config) {
  std::vector<std::uint64_t> touched(static_cast<std::size_t>(world.size()));
  world.all_gather(&mine, touched.data(), sizeof mine);
  // What is left of the last step is there in no time.
  const std::uint64_t in_time = memory_in_time(std::move(touched));
  if (in_time + step_bytes > plan.arena_bytes) return {};
  config.agreed_memory_bytes = in_time;
  return LaunchFinding{
      "info", "uncovered",
      fmt::format("cases use {} of memory per rank instead of {}: the system gave out no more within {}",
                  format_bytes(in_time), format_bytes(plan.arena_bytes),
                  format_seconds(memory_seconds(config)))};
}

}  // namespace assay
