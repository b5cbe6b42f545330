// SPDX-License-Identifier: Apache-2.0
#include "run/file_start.hpp"

#include <fmt/format.h>

#include <random>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "device/device.hpp"
#include "topology/inventory_tables.hpp"

namespace assay {
namespace {

std::uint64_t random_bits() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) ^ source();
}

}  // namespace

std::uint64_t seed_of(const Config& config) { return config.seed_given ? config.seed : random_bits() >> 1; }

results::Writer::Start start_of_file(const Config& config, const Plan& plan, const Topology& topology,
                                     const EntityTable& entities,
                                     const std::vector<std::pair<std::string, std::string>>& environment) {
  results::Writer::Start start;
  start.info.run_id = fmt::format("{:016x}{:016x}", random_bits(), random_bits());
  start.info.started = utc_now_iso();
  start.info.command_line = config.command_line;
  start.info.assay_version = ASSAY_VERSION;
  start.info.level = to_string(config.level);
  start.info.seed = config.seed;
  start.info.plan_hash = plan.hash;
  start.info.injected = !config.faults.empty();
  start.config = config.to_json(false);
  start.config["memory_per_rank_bytes"] = plan.memory_per_rank_bytes;
  for (const Case& c : plan.cases)
    start.plan.push_back({c.suite, c.name, c.not_applicable.empty() ? "planned" : "not_applicable",
                          c.not_applicable, c.required, c.entities, c.bytes, c.expected_s(), c.deadline_s,
                          fmt::format("{}", fmt::join(c.checkers, ",")),
                          fmt::format("{}", fmt::join(c.faults.targets, ","))});
  start.environment = environment_rows(topology);
  for (const auto& [key, value] : environment)
    start.environment.push_back({topology.nodes.front().hostname, key, value});
  for (const auto& [key, value] : blas_info())
    start.environment.push_back({topology.nodes.front().hostname, "blas." + key, value});
  start.entities = entities.rows();
  start.inventory = inventory_tables(topology, entities);
  return start;
}

}  // namespace assay
