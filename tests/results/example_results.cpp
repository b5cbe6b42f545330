// SPDX-License-Identifier: Apache-2.0
#include "tests/results/example_results.hpp"

#include <cmath>

namespace assay::results::example {
namespace {

InventoryTable node_inventory() {
  InventoryTable table;
  table.entity = {1, 2};
  table.text["kernel"] = {"6.1.0", ""};
  table.text["governor"] = {"performance", "pöwersave"};
  table.number["memory"] = {64e9, not_taken};
  table.unit["memory"] = "B";
  table.number["cores"] = {2, 2};
  table.unit["cores"] = "count";
  return table;
}

void add_links(CaseBundle& out, int i) {
  const auto first = static_cast<std::int32_t>(7 + 2 * (i / 5));  // every fifth case brought two
  CaseData& data = out.data;
  data.kind = "link";
  data.entity = {first, first + 1};
  data.source = {3, 4};
  data.destination = {4, 3};
  for (const std::int32_t row : data.entity) {
    const std::string name = "link" + std::to_string(row);
    out.new_entities.push_back({"link", "id:" + name, "path", name, 0, -1});
  }
}

void add_samples(CaseData& data, int i, std::size_t samples) {
  const std::size_t n = data.entity.size();
  for (std::size_t s = 0; s < samples; ++s) {
    data.sample.push_back(static_cast<std::int32_t>(s));
    data.block.push_back(static_cast<std::int32_t>(s / 5));
  }
  Metric throughput{"throughput", "FLOP/s", Better::higher, true, Role::metric, true, {}};
  Metric clock{"clock", "Hz", Better::none, false, Role::covariate, false, {}};
  IntegerArray digest{"digest", {"step", "entity", "bucket"}, {2, n, 3}, {}};
  for (std::size_t e = 0; e < n; ++e) {
    data.count.push_back(static_cast<std::int32_t>(e == 0 && samples > 1 ? samples - 1 : samples));
    for (std::size_t s = 0; s < samples; ++s) {
      const bool taken = static_cast<std::int32_t>(s) < data.count.back();
      data.t.push_back(taken ? 0.1 * static_cast<double>(s) + i : not_taken);
      throughput.values.push_back(taken ? 1e11 / 3 + static_cast<double>(1000 * e + s) : not_taken);
    }
    clock.values.push_back(e == 1 ? not_taken : 2.5e9);
  }
  for (std::size_t k = 0; k < 6 * n; ++k) digest.values.push_back(0xffffffffffffffffULL - k);
  // Every other case is one of before metrics and cases described themselves.
  if (i % 2 == 0) {
    throughput.judging =
        Judging{MetricClass::compute, 0.07, 0.5, Floor::nic_rate, SharedBy::group, i % 4 == 0};
    throughput.title = "how fast";
    clock.judging = Judging{};
    data.traits = CaseTraits{"product", i % 4 == 0, i % 4 == 2};
  }
  data.metrics = {throughput, clock};
  data.arrays = {digest};
}

}  // namespace

Writer::Start start(int cases) {
  Writer::Start s;
  s.info.run_id = "run-0001";
  s.info.started = "2026-01-01T00:00:00Z";
  s.info.command_line = "assay run --level quick \"a b\"";
  s.info.assay_version = "0.1.0";
  s.info.level = "quick";
  s.info.plan_hash = "0123456789abcdef";
  s.info.seed = 0xfedcba9876543210ULL;
  s.config = Json{{"level", "quick"}, {"gemm.dtypes", {"fp32", "fp64"}}, {"ratio", 0.5}, {"none", nullptr}};
  s.environment = {{"node01", "hdf5", "1.10.8"}, {"", "OMP_NUM_THREADS", ""}};
  s.entities = {{"cluster", "c", "path", "cluster", -1, -1},
                {"node", "uuid-1", "dmi", "node01", 0, -1},
                {"node", "uuid-2", "dmi", "node02", 0, -1},
                {"device", "uuid-1/a", "path", "node01/cores0-1", 1, 0},
                {"device", "uuid-1/b", "path", "node01/cores2-3", 1, 1},
                {"device", "uuid-2/a", "path", "node02/cores0-1", 2, 2},
                {"device", "uuid-2/b", "path", "node02/cores2-3", 2, 3}};
  for (int i = 0; i < cases; ++i) {
    const CaseBundle b = bundle(i);
    PlanRow row{b.data.suite,
                b.data.name,
                "planned",
                "",
                b.data.required,
                static_cast<std::int64_t>(b.data.entities()),
                1u << 20,
                1.5,
                30};
    if (i % 2 == 0) {
      row.checkers = i == 0 ? "gemm,other" : i == 2 ? "" : no_checks;
      row.targets = "gemm";
    }
    s.plan.push_back(row);
  }
  s.plan.push_back({"p2p", "latency-8-mpi", "not_applicable", "one rank", false, 0, 0, 0, 0});
  s.inventory["node"] = node_inventory();
  s.inventory["dimm"] = InventoryTable{};
  return s;
}

CaseBundle bundle(int i, std::size_t entities, std::size_t samples) {
  CaseBundle out;
  CaseData& data = out.data;
  data.suite = i % 2 == 0 ? "gemm" : "memory";
  data.name = "op" + std::to_string(i) + "-n4096-together";
  data.required = i % 3 == 0;
  data.stage = "node-local";
  data.case_key = "key" + std::to_string(i);
  data.started = "2026-01-01T00:00:0" + std::to_string(i % 10) + "Z";
  data.ended = "2026-01-01T00:01:0" + std::to_string(i % 10) + "Z";
  data.shares = {1.5, 0.25, 1.0, 0.125};
  data.parameters["n"] = 4096;
  data.parameters["dtype"] = "fp32";
  data.parameters["alpha"] = 0.75;
  data.parameters["offset"] = -3;
  data.parameters["big"] = 0xffffffffffffffffULL;
  data.parameters["pinned"] = true;
  data.parameters["sizes"] = {1, 2, 3};
  data.kind = "device";
  if (i % 7 == 6 && i % 5 != 0) {
    data.state = CaseState::skip;
    data.reason = "budget";
    return out;
  }
  if (i % 5 == 0) {
    add_links(out, i);
  } else {
    for (std::size_t e = 0; e < entities; ++e) data.entity.push_back(static_cast<std::int32_t>(3 + e % 4));
  }
  add_samples(data, i, samples);
  out.telemetry = {{2, 2}, {i + 0.5, i + 1.5}, {{"clock", {2e9, not_taken}}}, {{"clock", "Hz"}}};
  if (i % 2 == 0)
    out.telemetry.append({{3},
                          {i + 0.5},
                          {{"power", {300}}, {"temperature", {320.5}}},
                          {{"power", "W"}, {"temperature", "K"}}});
  out.flags = {{i + 0.5, 3, "sw_power_cap", i % 2}};
  out.counters = {{data.path(), 1, "edac_ce", 0, 1}, {data.path(), 2, "aer", not_taken, not_taken}};
  if (i == 1) {
    data.state = CaseState::fail;
    data.reason = "1 miscompare";
    out.errors = {{data.path(), 3, 17, 0xaaaaaaaaaaaaaaaaULL, 0xaaaaaaaaaaaaaaabULL, 0xaaaaaaaaaaaaaaabULL,
                   1.25, 131, 12, 31}};
    out.selftest = {{"gemm", 1, 1, 1, 1, 3}};
  }
  return out;
}

VerdictData verdict(int cases) {
  VerdictData v;
  v.state = "FAIL";
  v.exit_code = 2;
  v.basis = "limit 1, peers only 3";
  v.reasons = {"corrupt data on node01"};
  v.accounting.planned = cases;
  for (int i = 0; i < cases; ++i) {
    const CaseState state = bundle(i).data.state;
    (state == CaseState::pass   ? v.accounting.passed
     : state == CaseState::fail ? v.accounting.failed
                                : v.accounting.skipped)++;
  }
  Finding finding;
  finding.severity = "FAIL";
  finding.claim = "fact";
  finding.level = "device";
  finding.name = "node01/cores0-1";
  finding.members = {"a", "b \"c\""};
  finding.kind = "corrupt";
  finding.value = 1;
  finding.samples = 10;
  finding.confirm("fact");
  v.findings = {finding, Finding{}};
  v.findings[1].severity = "WARN";
  v.findings[1].claim = "magnitude";
  v.findings[1].deficit = 0.125;
  v.findings[1].uncertainty = 0.0625;
  v.entities = {{1, "FAIL", "corrupt"}, {2, "PASS", ""}};
  v.inputs = Json{{"delta", 0.02}};
  return v;
}

Results write(const std::filesystem::path& file, int cases) {
  const Writer::Start s = start(cases);
  Results out;
  Writer writer = Writer::create(file, s, false);
  writer.add_event({0.5, -1, "start", "first"});
  out.entities = s.entities;
  for (int i = 0; i < cases; ++i) {
    const CaseBundle b = bundle(i);
    writer.add_case(b);
    out.cases.push_back(b.data);
    out.entities.insert(out.entities.end(), b.new_entities.begin(), b.new_entities.end());
    out.errors.insert(out.errors.end(), b.errors.begin(), b.errors.end());
    out.counters.insert(out.counters.end(), b.counters.begin(), b.counters.end());
    out.telemetry.append(TelemetryTable(b.telemetry));
    out.flags.insert(out.flags.end(), b.flags.begin(), b.flags.end());
    out.selftest.insert(out.selftest.end(), b.selftest.begin(), b.selftest.end());
  }
  writer.add_event({1.5, 1, "stall", "a line\nand \xff another"});
  out.verdict = verdict(cases);
  writer.finish(*out.verdict, "complete");
  out.info = s.info;
  out.info.state = "complete";
  out.info.verdict = "FAIL";
  out.config = s.config;
  out.plan = s.plan;
  out.environment = s.environment;
  out.inventory = s.inventory;
  out.events = {{0.5, -1, "start", "first"}, {1.5, 1, "stall", "a line\nand \xef\xbf\xbd another"}};
  return out;
}

}  // namespace assay::results::example
