// SPDX-License-Identifier: Apache-2.0
// Results made by hand for tests of the verdict and the report.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "verdict/verdict.hpp"

namespace assay::fabricate {

/// A cluster of nodes with host devices (one rank each), a NUMA domain and a NIC per node.
inline results::Results cluster(int nodes, int devices_per_node = 1) {
  results::Results r;
  r.info.run_id = "test";
  r.info.state = "complete";
  r.info.level = "quick";
  r.info.started = "2026-01-01T00:00:00Z";
  r.info.assay_version = "0.1.0";
  r.entities.push_back({"cluster", "cluster", "path", "cluster", -1, -1});
  int rank = 0;
  for (int n = 0; n < nodes; ++n) {
    const std::string name = "node" + std::to_string(n);
    const auto row = static_cast<std::int32_t>(r.entities.size());
    r.entities.push_back({"node", "id-" + name, "dmi", name, 0, -1});
    r.entities.push_back({"numa", "id-" + name + "/numa0", "path", name + "/numa0", row, -1});
    r.entities.push_back({"nic", "mac-" + name, "mac", name + "/eth0", row, -1});
    for (int d = 0; d < devices_per_node; ++d) {
      const std::string device = name + "/cores" + std::to_string(2 * d) + "-" + std::to_string(2 * d + 1);
      r.entities.push_back({"device", "id-" + device, "path", device, row, rank++});
    }
  }
  return r;
}

inline std::vector<std::int32_t> rows_of_kind(const results::Results& r, const std::string& kind) {
  std::vector<std::int32_t> rows;
  for (std::size_t i = 0; i < r.entities.size(); ++i) {
    if (r.entities[i].kind == kind) rows.push_back(static_cast<std::int32_t>(i));
  }
  return rows;
}

inline std::int32_t row_named(const results::Results& r, const std::string& name) {
  for (std::size_t i = 0; i < r.entities.size(); ++i) {
    if (r.entities[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

/// A small deterministic wobble of about +-`size` around 1.
inline double wobble(std::size_t i, double size = 0.002) {
  return 1.0 + size * (static_cast<double>((i * 7) % 5) - 2.0) / 2.0;
}

/// A planned case in which entity e measured values[e] with `samples` samples.
inline results::CaseData& add_case(results::Results& r, const std::string& suite, const std::string& name,
                                   const std::string& metric, const std::string& unit, results::Better better,
                                   const std::string& kind, const std::vector<std::int32_t>& rows,
                                   const std::vector<double>& values, int samples = 6, bool required = true) {
  results::PlanRow plan;
  plan.suite = suite;
  plan.name = name;
  plan.required = required;
  plan.entities = static_cast<std::int64_t>(rows.size());
  r.plan.push_back(plan);
  results::CaseData c;
  c.suite = suite;
  c.name = name;
  c.required = required;
  c.kind = kind;
  c.stage = suite == "p2p" ? "pairs" : suite == "allreduce" ? "world" : "node-local";
  c.case_key = suite + name;
  c.entity = rows;
  results::Metric m{metric, unit, better, true, results::Role::metric, true, {}};
  for (int s = 0; s < samples; ++s) {
    c.sample.push_back(s);
    c.block.push_back(0);
  }
  for (std::size_t e = 0; e < rows.size(); ++e) {
    c.count.push_back(samples);
    for (int s = 0; s < samples; ++s) {
      m.values.push_back(values[e] * wobble(e + static_cast<std::size_t>(s)));
      c.t.push_back(s);
    }
  }
  c.metrics.push_back(m);
  r.cases.push_back(c);
  return r.cases.back();
}

inline void add_selftest(results::Results& r, const std::string& checker) {
  r.selftest.push_back({checker, 1, 1, 1, 1, -1});
}

/// A healthy run of gemm on every device: PASS unless a test breaks it.
inline results::Results healthy(int nodes = 4, int devices_per_node = 1, double rate = 1e11) {
  auto r = cluster(nodes, devices_per_node);
  const auto devices = rows_of_kind(r, "device");
  std::vector<double> values;
  for (std::size_t i = 0; i < devices.size(); ++i) values.push_back(rate * wobble(i, 0.004));
  add_case(r, "gemm", "fp32-n2048-together", "throughput", "FLOP/s", results::Better::higher, "device",
           devices, values);
  add_selftest(r, "gemm");
  return r;
}

inline results::CaseData& first_case(results::Results& r) { return r.cases.front(); }

/// Adds an unmeasured case to the plan.
inline void plan_only(results::Results& r, const std::string& suite, const std::string& name, bool required) {
  results::PlanRow plan;
  plan.suite = suite;
  plan.name = name;
  plan.required = required;
  r.plan.push_back(plan);
}

inline results::VerdictData judge(const results::Results& r, const std::string& limits = "") {
  verdict::Options o = verdict::options_from(r);
  if (!limits.empty()) {
    o.limits_text = limits;
    o.limits_name = "limits.toml";
  }
  auto v = verdict::judge(r, o);
  for (const auto& f : v.findings) EXPECT_EQ(f.confirmed, !f.confirmed_by.empty()) << f.text;
  return v;
}

inline const results::Finding* find_kind(const results::VerdictData& v, const std::string& kind) {
  const auto it =
      std::find_if(v.findings.begin(), v.findings.end(), [&](const auto& f) { return f.kind == kind; });
  return it == v.findings.end() ? nullptr : &*it;
}

inline std::size_t count_severity(const results::VerdictData& v, const std::string& severity) {
  return static_cast<std::size_t>(std::count_if(v.findings.begin(), v.findings.end(),
                                                [&](const auto& f) { return f.severity == severity; }));
}

inline std::string all_reasons(const results::VerdictData& v) {
  std::string text;
  for (const auto& reason : v.reasons) text += reason + "\n";
  return text;
}

inline std::string state_of(const results::Results& r, const results::VerdictData& v,
                            const std::string& name) {
  for (const auto& s : v.entities) {
    if (s.entity == row_named(r, name)) return s.state;
  }
  return "";
}

}  // namespace assay::fabricate
