// SPDX-License-Identifier: Apache-2.0
#include "run/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "run/injector.hpp"
#include "run/retest.hpp"
#include "telemetry/core_share.hpp"
#include "telemetry/power_meter.hpp"

namespace assay {
namespace {

Suite& suite_of(const Case& c, const std::vector<std::unique_ptr<Suite>>& suites) {
  for (const auto& suite : suites)
    if (suite->name() == c.suite) return *suite;
  throw Error(ErrorKind::internal, "no suite of a planned case: " + c.path());
}

}  // namespace

double give_up_s(const Case& c, double seconds) noexcept {
  constexpr double late_s = 10;  // for what has begun when the time is over
  return std::max(c.deadline_s, seconds + late_s);
}

bool Runner::run_all() {
  int number;
  while ((number = parts_.link.next_case()) >= 0) {
    // What the plan does not hold is a retest case, and comes with its order.
    const auto index = static_cast<std::size_t>(number);
    const Order order = order_from(parts_.link.step_text());
    const Case c =
        index < parts_.plan.cases.size()
            ? parts_.plan.cases[index]
            : retest_case(parts_.plan, retest_order_from(order.retest), parts_.topology, parts_.entities);
    const std::string who =
        fmt::format("rank {} on {}", parts_.world.rank(), parts_.topology.my_node().hostname);
    parts_.link.record(number,
                       bounded_text(run_case(c, order.seconds), who, c.path(), supervisor::most_text_bytes));
  }
  return number == supervisor::next_segment;
}

CaseRecord Runner::measure(const Case& c, double seconds) {
  CaseRecord record;
  const double begin = now_s();
  const CoreShare cores;
  Context context{parts_,
                  case_stream(parts_.config.seed, c.path()),
                  parts_.run_start_s,
                  begin + give_up_s(c, seconds),
                  record,
                  parts_.entities.device_of_rank(parts_.world.rank()),
                  parts_.injector,
                  c.retest.get(),
                  &parts_.link.heartbeat(),
                  parts_.gpu_links,
                  parts_.power_meter,
                  begin + seconds};
  try {
    Suite& suite = suite_of(c, parts_.suites);
    // A stage inside of nodes must not meet the ranks of others: they may be gone.
    Communicator& group = c.stage <= Stage::node_local ? parts_.node : parts_.world;
    if (parts_.injector != nullptr) parts_.injector->begin_case(c, suite.metrics(), group);
    suite.run(c, context);
    if (c.retest) join_visits(record);
  } catch (const Error& e) {
    const bool of_gpu =
        e.kind() == ErrorKind::device && context.device.has_own_memory() && context.device_entity >= 0;
    record.set_state(results::CaseState::error,
                     of_gpu ? parts_.entities.rows()[static_cast<std::size_t>(context.device_entity)].name +
                                  ": " + e.what()
                            : e.what());
  } catch (const std::exception& e) {
    record.set_state(results::CaseState::error, fmt::format("unexpected: {}", e.what()));
  }
  if (parts_.injector != nullptr) parts_.injector->end_case(record);
  record.wall_s_ = now_s() - begin;
  // The thread that waits for a GPU tells nothing of its speed.
  if (!parts_.device.has_streams()) record.core_share_ = cores.share();
  name_other_process(record.core_share_, record);
  return record;
}

void Runner::name_other_process(double share, CaseRecord& record) {
  constexpr double least = 0.9;
  if (!(share < least) || std::exchange(other_process_named_, true)) return;
  const std::string other = busiest_other([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); },
                                          parts_.topology.me().cpus);
  if (!other.empty())
    record.event(results::core_share_event, other, parts_.entities.device_of_rank(parts_.world.rank()));
}

/// Counter values of this node before and after a case, as text for the gather. All of them in the first
/// case, which shows what can be read; later only what moved.
std::string Runner::counters_after(std::vector<double> before, CaseRecord& record) {
  if (parts_.counters == nullptr) return {};
  const std::string& node = parts_.topology.my_node().hostname;
  const bool all = !std::exchange(counters_told_, true);
  const CounterSet& set = parts_.counters->set();
  const auto& after = parts_.counters->after();
  before.resize(after.size(), 0);
  Json rows = Json::array();
  if (all) {
    for (const auto& family : set.unsupported_families())
      tell_counter(rows, "node", node, family, unsupported, unsupported);
    for (const auto& source : set.unsupported_sources()) {
      tell_counter(rows, source.entity_kind, source.entity_name, source.counter, unsupported, unsupported);
      if (source.saturated)
        record.launch_event("info", "uncovered",
                            fmt::format("{}: {} is at its maximum and counts no further until it is cleared",
                                        source.entity_name, source.counter),
                            parts_.entities.find(source.entity_kind, source.entity_name));
    }
    tell_unreadable(before, after, record);
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto& source = set.sources()[i];
    if (!all && before[i] == after[i]) continue;
    tell_counter(rows, source.entity_kind, source.entity_name, source.counter, before[i], after[i]);
    if (source.counter.starts_with("xid_") && after[i] > before[i]) {
      const int xid = std::atoi(source.counter.c_str() + 4);
      const std::string words = words_of_xid(xid);
      record.event("xid",
                   fmt::format("{}: Xid {}{}{}", source.entity_name, xid, words.empty() ? "" : ": ", words),
                   parts_.entities.find(source.entity_kind, source.entity_name));
    }
  }
  return rows.empty() ? std::string() : rows.dump();
}

/// Counters that cannot be read from the start on count as not offered.
void Runner::tell_unreadable(const std::vector<double>& before, const std::vector<double>& after,
                             CaseRecord& record) const {
  std::map<std::string, std::vector<std::string>> silent;
  const auto& sources = parts_.counters->set().sources();
  for (std::size_t i = 0; i < after.size(); ++i)
    if (std::isnan(before[i]) && std::isnan(after[i]))
      silent[sources[i].entity_name].push_back(sources[i].counter);
  for (const auto& [name, counters] : silent)
    record.launch_event("inconclusive", "uncovered",
                        fmt::format("{}: {} counter{} cannot be read, {} the first", name, counters.size(),
                                    counters.size() == 1 ? "" : "s", counters.front()),
                        parts_.entities.find("device", name));
}

std::string Runner::telemetry_text(CaseRecord& record) {
  if (parts_.telemetry == nullptr) return {};
  const TelemetryChunk chunk = parts_.telemetry->take();
  if (chunk.series.empty() && chunk.flags.empty()) return {};
  const auto since = [&](double t) { return t - parts_.run_start_s; };
  for (const auto& [device, count] : chunk.dropped)
    record.event("telemetry",
                 fmt::format("{}: throttle flags were set {} times more than are recorded", device, count),
                 parts_.entities.find("device", device));
  Json series = Json::array(), flags = Json::array();
  for (const auto& s : chunk.series) {
    Json values = Json::object(), times = Json::array();
    for (const double t : s.t) times.push_back(since(t));
    for (const auto& [name, column] : s.values) {
      Json& list = values[name] = Json::array();
      for (const double value : column) list.push_back(std::isfinite(value) ? Json(value) : Json());
    }
    series.push_back({s.entity_kind, s.entity_name, times, values});
  }
  for (const auto& f : chunk.flags)
    flags.push_back({since(f.t), f.entity_kind, f.entity_name, f.flag, f.set ? 1 : 0});
  return Json{{"series", series}, {"flags", flags}}.dump();
}

CaseReport Runner::run_case(const Case& c, double seconds) {
  auto before = parts_.counters != nullptr ? parts_.counters->before() : std::vector<double>();
  CaseRecord record = measure(c, seconds);
  std::string counters = counters_after(std::move(before), record);
  std::string telemetry = telemetry_text(record);
  return {record.serialize(), std::move(counters), std::move(telemetry),
          parts_.injector != nullptr ? parts_.injector->never_fired() : std::vector<std::string>{}};
}

}  // namespace assay
