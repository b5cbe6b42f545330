// SPDX-License-Identifier: Apache-2.0
#include "suite/device_power.hpp"

#include <vector>

#include "base/json.hpp"

namespace assay {
namespace {

/// Moves of all counters of a node, the packages last. Ranks of a node share its clock, so that times need no
/// translation.
Json to_json(const std::vector<EnergyReading>& readings) {
  std::size_t gpus = 0;
  for (const EnergyReading& reading : readings) gpus = std::max(gpus, reading.gpus_j.size());
  Json all = Json::array();
  for (std::size_t i = 0; i <= gpus; ++i) {
    EnergyTrace trace;
    for (const EnergyReading& reading : readings) {
      trace.t.push_back(reading.t);
      trace.joules.push_back(i == gpus                   ? reading.packages_j
                             : i < reading.gpus_j.size() ? reading.gpus_j[i]
                                                         : unsupported);
    }
    const EnergyTrace moves = moves_of(trace);
    all.push_back({moves.t, moves.joules});
  }
  return all;
}

}  // namespace

DevicePower::DevicePower(const Context& context, double period_s) : context_(context) {
  if (context.power_meter) meter_ = context.power_meter(period_s);
}

EnergyTrace DevicePower::finish() {
  std::string mine;
  if (meter_ != nullptr) mine = to_json(meter_->finish()).dump();
  const Json all = Json::parse(context_.node.broadcast_text(mine.empty() ? "[]" : mine, 0));
  const RankPlace& me = context_.topology.me();
  if (all.empty()) return {};
  const std::size_t gpus = all.size() - 1;
  if (me.gpu >= 0 && static_cast<std::size_t>(me.gpu) >= gpus) return {};
  const Json& trace = all[me.gpu >= 0 ? static_cast<std::size_t>(me.gpu) : gpus];
  return {trace[0].get<std::vector<double>>(), trace[1].get<std::vector<double>>()};
}

}  // namespace assay
