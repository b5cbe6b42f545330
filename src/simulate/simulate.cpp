// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "simulate/facts.hpp"
#include "simulate/schedule.hpp"
#include "verdict/retest/retest.hpp"

namespace assay::simulate {
namespace {

std::string case_name(const MetricModel& m) { return m.name; }

void plan_case(results::Results& r, const results::CaseData& c, const std::vector<std::string>& checkers) {
  results::PlanRow row;
  if (!checkers.empty()) row.checkers = fmt::format("{}", fmt::join(checkers, ","));
  row.suite = c.suite;
  row.name = c.name;
  row.required = c.required;
  row.entities = static_cast<std::int64_t>(c.entities());
  row.seconds = c.shares.wall_s;
  row.deadline_s = 10 + 4 * c.shares.wall_s;
  r.plan.push_back(std::move(row));
}

void describe_run(results::Results& r, const Machine& machine) {
  const Spec& spec = machine.spec();
  r.info.run_id = fmt::format("simulated-{:x}-{}", spec.seed, spec.run);
  r.info.state = "complete";
  r.info.started = r.info.ended = spec.started.empty() ? utc_now_iso() : spec.started;
  r.info.command_line = "assay simulate";
  r.info.assay_version = ASSAY_VERSION;
  r.info.level = spec.level;
  r.info.seed = spec.seed;
  r.info.plan_hash = fmt::format("{:016x}", hash_text(to_json(spec).dump()));
  r.info.injected = !spec.faults.empty();
  r.config["simulated"] = to_json(spec);
  r.environment.push_back({"", "simulated", "1"});
  r.events.push_back({0, -1, "simulated", "synthetic data: no machine was measured"});
  r.entities = machine.entities();
  r.inventory = machine.inventory();
}

/// Seconds that all screening cases take one after another.
double planned_seconds(const Spec& spec) {
  return static_cast<double>(spec.metrics.size()) * static_cast<double>(spec.samples) * sample_s;
}

const MetricModel* model_of(const Spec& spec, const verdict::Retest& retest) {
  const auto it = std::find_if(spec.metrics.begin(), spec.metrics.end(), [&](const MetricModel& m) {
    return m.suite == retest.suite && m.name == retest.name;
  });
  return it == spec.metrics.end() ? nullptr : &*it;
}

double end_of(const results::Results& r) {
  double end = 0;
  for (const auto& c : r.cases)
    if (!c.t.empty()) end = std::max(end, c.t[c.t.size() - 1] + sample_s);
  return end;
}

bool add_retest(results::Results& r, const Machine& machine, const verdict::Retest& retest) {
  const MetricModel* model = model_of(machine.spec(), retest);
  if (model == nullptr) return false;
  CaseSchedule schedule;
  schedule.name = fmt::format("{}.c{}", retest.name, retest.number);
  schedule.start_s = end_of(r);
  schedule.planned_s = planned_seconds(machine.spec());
  schedule.samples = std::max(1, retest.samples);
  schedule.blocks = std::min<std::int64_t>(schedule.samples, 5);
  schedule.retest = true;
  schedule.variant = retest.variant;
  const bool known = std::any_of(r.cases.begin(), r.cases.end(), [&](const auto& c) {
    return c.suite == retest.suite && c.name == schedule.name;
  });
  if (known) return false;
  if (model->subject == Subject::link) {
    Rounds both_ways;  // as the suite measures pairs
    for (const auto& round : retest.rounds) {
      auto& links = both_ways.emplace_back();
      for (const auto& ends : round) links.insert(links.end(), {ends, {ends.destination, ends.source}});
    }
    r.cases.push_back(measure_links(machine, *model, both_ways, schedule, r.entities));
  } else if (model->subject == Subject::collective) {
    r.cases.push_back(measure_collective(machine, *model, schedule));  // by all devices, in new groups
  } else {
    std::vector<std::int32_t> rows = retest.candidates;
    rows.insert(rows.end(), retest.controls.begin(), retest.controls.end());
    std::sort(rows.begin(), rows.end());
    r.cases.push_back(measure_devices(machine, *model, rows, schedule));
  }
  return true;
}

/// Why a fault of rates changed none.
std::string why_without_effect(const Spec& spec, const Fault& fault) {
  if (fault.duty < 1) return "its duty selected no sample";
  if (!fault.leaves.everything()) {
    const bool by_rail = spec.nics_per_node > 1 && spec.leaves == spec.nics_per_node;
    return "no measured pair or group connects the leaf with another leaf" +
           (by_rail
                ? fmt::format("; {} leaves for {} NICs per node put NIC k of all nodes on leaf k, --leaves "
                              "{} makes two groups of nodes",
                              spec.leaves, spec.nics_per_node, 2 * spec.nics_per_node)
                : std::string());
  }
  if (fault.pair_source >= 0)
    return "the pair is not measured; pairs are of devices with the same number on two nodes, and --rounds "
           "sets how many";
  const bool collectives = std::ranges::any_of(
      spec.metrics, [](const MetricModel& m) { return m.subject == Subject::collective; });
  if (!fault.of_network() && collectives)
    return "a device slows a collective only by a fault slow with its suite (suite=allreduce)";
  return "no measured part is hit";
}

constexpr const char* without_effect = "injected fault without effect on the first measurements: ";

/// A fault that changed nothing is an event, as in a real run.
void name_without_effect(results::Results& r, const Machine& machine) {
  for (const Fault& fault : machine.spec().faults) {
    if (machine.acted(fault)) continue;
    const std::string why = why_without_effect(machine.spec(), fault);
    r.events.push_back({0, -1, "inject-unfired", without_effect + fault.text + ": " + why});
  }
}

}  // namespace

results::Results screen(const Spec& spec) {
  const Machine machine(spec);
  results::Results r;
  describe_run(r, machine);
  std::vector<std::int32_t> devices;
  for (std::int64_t d = 0; d < machine.devices(); ++d) devices.push_back(machine.device_row(d));
  CaseSchedule schedule;
  schedule.samples = spec.samples;
  schedule.blocks = spec.blocks;
  schedule.planned_s = planned_seconds(spec);
  for (const MetricModel& m : machine.spec().metrics) {
    schedule.name = case_name(m);
    results::CaseData c =
        m.subject == Subject::device ? measure_devices(machine, m, devices, schedule)
        : m.subject == Subject::collective
            ? measure_collective(machine, m, schedule)
            : measure_links(machine, m, cross_rounds(machine, m.name, m.rounds, m.more_rounds), schedule,
                            r.entities);
    if (c.entities() == 0) continue;
    plan_case(r, c, m.checkers);
    r.cases.push_back(std::move(c));
    schedule.start_s += r.cases.back().shares.wall_s;
  }
  add_facts(r, machine);
  name_without_effect(r, machine);
  return r;
}

void refuse_without_effect(const Spec& spec, const results::Results& screened) {
  for (const Fault& fault : spec.faults) {
    const std::string begin = without_effect + fault.text + ": ";
    for (const auto& event : screened.events)
      if (fault.duty >= 1 && event.kind == "inject-unfired" && event.text.starts_with(begin))
        throw_usage("--fault: '" + fault.text + "': changes no sample: " + event.text.substr(begin.size()));
  }
}

std::size_t run_retests(results::Results& results, const Spec& spec, const verdict::Options& options) {
  const Machine machine(spec);
  return run_retests(results, options,
                     [&](const verdict::Retest& retest) { return add_retest(results, machine, retest); });
}

std::size_t run_retests(results::Results& results, const verdict::Options& options,
                        const std::function<bool(const verdict::Retest&)>& measure) {
  std::size_t added = 0;
  for (int stage = 0; stage < most_stages; ++stage) {
    std::size_t now = 0;
    for (const auto& retest : verdict::retests(results, options)) now += measure(retest) ? 1 : 0;
    if (now == 0) break;
    added += now;
  }
  return added;
}

results::Results run(const Spec& spec, const verdict::Options& options) {
  results::Results r = screen(spec);
  run_retests(r, spec, options);
  r.verdict = verdict::judge(r, options);
  r.info.verdict = r.verdict->state;
  return r;
}

const char* to_string(Population population) noexcept {
  switch (population) {
    case Population::normal: return "normal";
    case Population::heavy: return "heavy";
    case Population::bimodal: return "bimodal";
    case Population::models: return "models";
    case Population::capped: return "capped";
    case Population::exponential: return "exponential";
    case Population::lognormal: return "lognormal";
  }
  return "normal";
}

const char* to_string(Noise noise) noexcept { return noise == Noise::heavy ? "heavy" : "normal"; }

Json to_json(const Spec& spec) {
  Json json;
  json["nodes"] = spec.nodes;
  json["devices-per-node"] = spec.devices_per_node;
  json["nics-per-node"] = spec.nics_per_node;
  json["leaves"] = spec.leaves;
  json["chassis"] = spec.nodes_per_chassis;
  json["metrics"] = Json::array();
  for (const auto& m : spec.metrics) json["metrics"].push_back(m.path());
  json["population"] = to_string(spec.population);
  json["noise"] = to_string(spec.noise);
  json["between-cv"] = spec.between_cv;
  json["uneven"] = spec.uneven;
  json["within-cv"] = spec.within_cv;
  json["run-cv"] = spec.run_cv;
  json["device-cv"] = spec.device_cv;
  json["node-cv"] = spec.node_cv;
  json["clock-cv"] = spec.clock_cv;
  json["gap"] = spec.gap;
  json["share"] = spec.share;
  json["nic-cv"] = spec.nic_cv;
  json["link-cv"] = spec.link_cv;
  json["samples"] = spec.samples;
  json["rounds"] = spec.rounds;
  json["blocks"] = spec.blocks;
  json["seed"] = spec.seed;
  json["run"] = spec.run;
  json["level"] = spec.level;
  json["faults"] = Json::array();
  for (const auto& fault : spec.faults) json["faults"].push_back(fault.text);
  return json;
}

}  // namespace assay::simulate
