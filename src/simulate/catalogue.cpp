// SPDX-License-Identifier: Apache-2.0
#include "simulate/catalogue.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "results/described.hpp"

namespace assay::simulate {
namespace {

using results::Better;

MetricModel device(const char* suite, const char* operation, std::string name, const char* metric,
                   const char* unit, Better better, double typical, double slope, Json parameters) {
  MetricModel model{suite,           std::move(name), metric,  unit,  better,
                    Subject::device, "node-local",    typical, slope, std::move(parameters)};
  model.operation = operation;
  return model;
}

void add_gemm(std::vector<MetricModel>& all) {
  // Rates of a current accelerator, sustained.
  const std::pair<const char*, double> types[] = {{"fp32", 4.8e13}, {"fp64", 5.5e13}, {"bf16", 6.5e14}};
  for (const auto& [dtype, rate] : types) {
    for (const int n : {2048, 4096, 8192}) {
      for (const char* mode : {"together", "alone"}) {
        all.push_back(device("gemm", "product", std::string(dtype) + "-n" + std::to_string(n) + "-" + mode,
                             "throughput", "FLOP/s", Better::higher, rate * (n == 2048 ? 0.9 : 1.0), 0.94,
                             {{"dtype", dtype}, {"n", n}, {"mode", mode}}));
      }
    }
  }
}

void add_memory(std::vector<MetricModel>& all) {
  for (const char* operation : {"triad", "copy", "read", "write"}) {
    for (const char* mode : {"together", "alone"}) {
      all.push_back(device("memory", "stream", std::string(operation) + "-" + mode, "bandwidth", "B/s",
                           Better::higher, 3.0e12, 0, {{"operation", operation}, {"mode", mode}}));
    }
  }
  all.push_back(device("memory", "latency", "latency-alone", "latency", "s", Better::lower, 6e-7, 0,
                       {{"mode", "alone"}}));
  for (const char* pattern : {"own-address", "moving-inversions", "march-c"}) {
    all.push_back(device("memory", "pattern", std::string("pattern-") + pattern + "-together", "bandwidth",
                         "B/s", Better::higher, 2.6e12, 0, {{"pattern", pattern}, {"mode", "together"}}));
  }
}

void add_links(std::vector<MetricModel>& all) {
  const auto link = [&](const std::string& operation, std::int64_t bytes, const char* mode,
                        const char* metric, const char* unit, Better better, double typical) {
    all.push_back({"p2p",
                   operation + "-" + std::to_string(bytes) + "-cross-mpi",
                   metric,
                   unit,
                   better,
                   Subject::link,
                   "pairs",
                   typical,
                   0,
                   {{"mode", mode},
                    {"bytes", bytes},
                    {"scope", "cross"},
                    {"transport", "mpi"},
                    {"series", "pipelined"}}});
    all.back().operation = mode;
  };
  link("bandwidth-uni", 4194304, "uni", "bandwidth", "B/s", Better::higher, 4.7e10);
  link("latency", 8, "latency", "latency", "s", Better::lower, 1.8e-6);
  link("bandwidth-bi", 4194304, "bi", "bandwidth", "B/s", Better::higher, 4.5e10);
}

void add_collectives(std::vector<MetricModel>& all) {
  const auto collective = [&](const char* scope, const char* stage, double busbw) {
    all.push_back(
        {"allreduce",
         std::string("allreduce-") + scope + "-16777216-mpi",
         "busbw",
         "B/s",
         Better::higher,
         Subject::collective,
         stage,
         busbw,
         0,
         {{"operation", "allreduce"}, {"scope", scope}, {"bytes", 16777216}, {"transport", "mpi"}}});
    all.back().operation = "pipelined";
  };
  collective("groups", "groups", 4.4e10);
  collective("world", "world", 4.2e10);
}

std::vector<MetricModel> make_catalogue() {
  std::vector<MetricModel> all;
  add_gemm(all);
  add_memory(all);
  add_links(all);
  add_collectives(all);
  return all;
}

/// The first `n` device metrics.
std::vector<MetricModel> first_metrics(const std::string& item) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), n);
  std::vector<MetricModel> devices;
  for (const auto& m : catalogue())
    if (m.subject == Subject::device) devices.push_back(m);
  if (error != std::errc{} || end != item.data() + item.size() || n == 0 || n > devices.size())
    throw_usage("'" + item + "': there are 1 to " + std::to_string(devices.size()) + " device metrics");
  devices.resize(n);
  return devices;
}

}  // namespace

const std::vector<MetricModel>& catalogue() {
  static const std::vector<MetricModel> all = make_catalogue();
  return all;
}

const std::vector<Check>& checks() {
  static const std::vector<Check> all{
      {"gemm", "gemm", "fp32-exact-n512", "gemm", "node-local"},
      {"memory", "memory", "pattern-own-address-errors", "memory", "node-local"},
      {"p2p", "pair", "payload-errors", "message", "pairs"},
      {"allreduce", "allreduce", "", "", "groups"}};
  return all;
}

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const Check& check : checks())
    if (check.target[0] != 0) names.emplace_back(check.target);
  return names;
}

const std::vector<std::string>& parts_of_a_node() {
  static const std::vector<std::string> parts{"device", "nic", "memory"};
  return parts;
}

std::vector<MetricModel> models_of(const std::vector<Declared>& suites) {
  std::vector<MetricModel> all;
  for (const Declared& suite : suites)
    for (const results::MetricSpec& m : suite.metrics) {
      if (!(m.typical > 0) || !m.judging) continue;
      const bool link = m.judging->of == results::MetricClass::link,
                 collective = m.judging->of == results::MetricClass::collective;
      // A synthetic case has one metric.
      const bool taken = std::any_of(all.begin(), all.end(), [&](const MetricModel& other) {
        return other.suite == suite.suite && other.name == m.operation;
      });
      MetricModel model{suite.suite,
                        taken ? m.operation + "-" + m.name : m.operation,
                        m.name,
                        m.unit,
                        m.better,
                        link         ? Subject::link
                        : collective ? Subject::collective
                                     : Subject::device,
                        link         ? "pairs"
                        : collective ? "world"
                                     : "node-local",
                        m.typical,
                        m.judging->follows_clock() ? 0.94 : 0.0};
      model.judging = m.judging;
      model.title = m.title;
      model.checkers = suite.checkers;
      all.push_back(std::move(model));
    }
  return all;
}

results::Judging judging_without_suite(const MetricModel& model) {
  results::CaseData c;
  c.suite = model.suite;
  c.name = model.name;
  c.stage = model.stage;
  c.kind = model.subject == Subject::link ? "link" : "device";
  c.parameters = model.parameters;
  results::Metric m;
  m.name = model.metric;
  m.unit = model.unit;
  m.better = model.better;
  return results::judging_of(c, m);
}

void describe(std::vector<MetricModel>& models, const std::vector<Declared>& suites) {
  for (MetricModel& model : models)
    for (const Declared& suite : suites) {
      if (suite.suite != model.suite || model.judging) continue;
      const auto spec = std::find_if(suite.metrics.begin(), suite.metrics.end(), [&](const auto& m) {
        return m.operation == model.operation && m.name == model.metric;
      });
      if (spec == suite.metrics.end())
        throw Error(ErrorKind::internal, model.path() + " is not declared by its suite");
      model.unit = spec->unit;
      model.better = spec->better;
      model.judging = judging_without_suite(model);
      if (spec->judging) {
        model.judging->of = spec->judging->of;
        model.judging->fault_threshold = spec->judging->fault_threshold;
        model.judging->weight = spec->judging->weight;
      }
      model.title = spec->title;
      model.checkers = suite.checkers;
    }
}

std::vector<std::string> suites_of(const std::vector<MetricModel>& further) {
  std::vector<std::string> suites;
  for (const auto* list : {&catalogue(), &further})
    for (const auto& m : *list)
      if (std::find(suites.begin(), suites.end(), m.suite) == suites.end()) suites.push_back(m.suite);
  return suites;
}

std::vector<MetricModel> pick_metrics(const std::vector<std::string>& items,
                                      const std::vector<MetricModel>& further) {
  std::vector<MetricModel> picked;
  const auto add = [&](const MetricModel& m) {
    const bool known =
        std::any_of(picked.begin(), picked.end(), [&](const auto& p) { return p.path() == m.path(); });
    if (!known) picked.push_back(m);
  };
  for (const std::string& item : items) {
    if (!item.empty() && item.find_first_not_of("0123456789") == std::string::npos) {
      for (const auto& m : first_metrics(item)) add(m);
      continue;
    }
    bool found = false;
    for (const auto* list : {&catalogue(), &further}) {
      for (const auto& m : *list) {
        const bool hit =
            m.suite == item || glob_match(item, m.path()) || glob_match(item, m.suite + "/" + m.name);
        if (hit) add(m);
        found = found || hit;
      }
    }
    if (found) continue;
    std::string suites;
    for (const std::string& suite : suites_of(further)) suites += (suites.empty() ? "" : ", ") + suite;
    throw_usage("'" + item + "' names no metric (a suite: " + suites +
                "; a glob on suite/case:metric; or how many device metrics)");
  }
  return picked;
}

}  // namespace assay::simulate
