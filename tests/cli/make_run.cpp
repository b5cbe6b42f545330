// SPDX-License-Identifier: Apache-2.0
// Writes a results file of a made-up fleet, for tests of commands that need more nodes than there are:
//   make_run OUT [key=value ...]
//   nodes=8 devices=1 rate=1e11 slow=NODE factor=0.9 seed=1 noise=0.002 started=2026-01-01T00:00:00Z key=TEXT
//   first=0 metrics=1 telemetry=0 (1: a clock and a power reading a second of each device, one of which
//   throttles)
#include <cstdio>
#include <iostream>
#include <map>
#include <string>

#include "base/error.hpp"
#include "base/random.hpp"
#include "results/writer.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

using Arguments = std::map<std::string, std::string>;

double number(const Arguments& a, const std::string& key, double otherwise) {
  const auto at = a.find(key);
  return at == a.end() ? otherwise : std::stod(at->second);
}

std::string text(const Arguments& a, const std::string& key, const std::string& otherwise) {
  const auto at = a.find(key);
  return at == a.end() ? otherwise : at->second;
}

constexpr int samples = 6;

results::Writer::Start start_of(const std::string& out, const Arguments& a, std::int32_t nodes,
                                std::int32_t devices, std::int32_t metrics) {
  results::Writer::Start start;
  start.info.run_id =
      std::to_string(hash_text(out)) + "-" + text(a, "seed", "1") + "-" + text(a, "started", "");
  start.info.started = text(a, "started", "2026-01-01T00:00:00Z");
  start.info.level = "quick";
  start.info.assay_version = "0.1.0";
  start.entities.push_back({"cluster", "cluster", "path", "cluster", -1, -1});
  const auto first = static_cast<std::int32_t>(number(a, "first", 0));
  for (std::int32_t n = 0; n < nodes; ++n) {
    const std::string name = "node" + std::to_string(first + n);
    const auto row = static_cast<std::int32_t>(start.entities.size());
    start.entities.push_back({"node", "uuid-" + name, "dmi", name, 0, -1});
    for (std::int32_t d = 0; d < devices; ++d) {
      const std::string part = "/cores" + std::to_string(4 * d) + "-" + std::to_string(4 * d + 3);
      start.entities.push_back({"device", "uuid-" + name + part, "path", name + part, row, n * devices + d});
    }
  }
  start.config = Json{{"level", "quick"}};
  for (std::int32_t m = 0; m < metrics; ++m) {
    results::PlanRow plan;
    plan.suite = "gemm";
    plan.name = "fp32-n" + std::to_string(1024 + m) + "-together";
    plan.required = true;
    plan.entities = nodes * devices;
    start.plan.push_back(plan);
  }
  return start;
}

void add_telemetry(results::CaseBundle& bundle) {
  for (const auto row : bundle.data.entity) {
    results::TelemetryTable t{{}, {}, {}, {{"clock", "Hz"}, {"power", "W"}}};
    for (int s = 0; s < 60; ++s) {
      t.entity.push_back(row);
      t.t.push_back(s);
      t.number["clock"].push_back(row == bundle.data.entity.front() && s >= 30 ? 1.2e9 : 1.8e9);
      t.number["power"].push_back(300 + s % 7);
    }
    bundle.telemetry.append(std::move(t));
  }
  bundle.flags.push_back({30, bundle.data.entity.front(), "hw_thermal", 1});
}

/// Samples around the rate of each device, which differs between devices by a third of a per cent at most and
/// not between runs.
results::CaseBundle case_of(const Arguments& a, const results::Writer::Start& start,
                            const std::string& name) {
  const RandomStream noise(mix64(hash_text(name), static_cast<std::uint64_t>(number(a, "seed", 1))));
  const double rate = number(a, "rate", 1e11), spread = number(a, "noise", 0.002);
  results::CaseBundle bundle;
  auto& c = bundle.data;
  c.suite = "gemm";
  c.name = name;
  c.required = true;
  c.stage = "node-local";
  c.kind = "device";
  c.case_key = text(a, "key", "0123456789abcdef");
  c.started = c.ended = start.info.started;
  results::Metric m{"throughput", "FLOP/s", results::Better::higher, true, results::Role::metric, true, {}};
  for (int s = 0; s < samples; ++s) {
    c.sample.push_back(s);
    c.block.push_back(s / 2);
  }
  const std::string slow = text(a, "slow", "");
  for (std::size_t e = 0; e < start.entities.size(); ++e) {
    const auto& entity = start.entities[e];
    if (entity.kind != "device") continue;
    c.entity.push_back(static_cast<std::int32_t>(e));
    c.count.push_back(samples);
    const bool is_slow = !slow.empty() && entity.name.starts_with(slow + "/");
    const double level = rate * (1 + 0.003 * RandomStream(hash_text(entity.id)).uniform(0)) *
                         (is_slow ? number(a, "factor", 0.9) : 1);
    for (int s = 0; s < samples; ++s) {
      m.values.push_back(level *
                         (1 + spread * (2 * noise.uniform(e * samples + static_cast<std::size_t>(s)) - 1)));
      c.t.push_back(20.0 * s);
    }
  }
  c.metrics.push_back(std::move(m));
  if (number(a, "telemetry", 0) > 0) add_telemetry(bundle);
  if (name.ends_with("1024-together")) bundle.selftest.push_back({"gemm", 1, 1, 1, 1, -1});
  return bundle;
}

void make(const std::string& out, const Arguments& a) {
  const auto nodes = static_cast<std::int32_t>(number(a, "nodes", 8)),
             devices = static_cast<std::int32_t>(number(a, "devices", 1));
  const auto start = start_of(out, a, nodes, devices, static_cast<std::int32_t>(number(a, "metrics", 1)));
  auto writer = results::Writer::create(out, start, false);
  results::Results r;
  r.info = start.info;
  r.info.state = "complete";
  r.config = start.config;
  r.plan = start.plan;
  r.entities = start.entities;
  for (const auto& plan : start.plan) {
    const auto bundle = case_of(a, start, plan.name);
    writer.add_case(bundle);
    r.cases.push_back(bundle.data);
    r.selftest.insert(r.selftest.end(), bundle.selftest.begin(), bundle.selftest.end());
  }
  writer.finish(verdict::judge(r, {}), "complete");
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  try {
    assay::Arguments arguments;
    for (int i = 2; i < argc; ++i) {
      const std::string text = argv[i];
      const auto equals = text.find('=');
      arguments[text.substr(0, equals)] = equals == std::string::npos ? "" : text.substr(equals + 1);
    }
    if (argc < 2) return 64;
    assay::make(argv[1], arguments);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
