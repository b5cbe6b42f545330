// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate_command.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "config/suggest.hpp"
#include "report/report.hpp"
#include "results/save.hpp"
#include "simulate/catalogue.hpp"
#include "simulate/fault.hpp"
#include "simulate/simulate.hpp"
#include "verdict/references.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {
namespace {

OptionSpec option(const char* name, OptionKind kind, const char* default_text, const char* value_name,
                  const char* help, std::vector<std::string> allowed = {}) {
  OptionSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.default_text = default_text;
  spec.value_name = value_name;
  spec.help = help;
  spec.allowed = std::move(allowed);
  return spec;
}

std::vector<simulate::Declared> declared_by(const Suites& suites) {
  std::vector<simulate::Declared> declared;
  for (const auto& suite : suites)
    declared.push_back({std::string(suite->name()), suite->metrics(), suite->checkers()});
  return declared;
}

std::vector<OptionSpec> simulate_options(const std::string& suites) {
  using enum OptionKind;
  std::vector<OptionSpec> options = {
      option("nodes", integer, "8", "N", "nodes"),
      option("devices-per-node", integer, "1", "G", "devices of every node"),
      option("nics-per-node", integer, "", "K", "NICs of every node; one per device when not given"),
      option("leaves", integer, "0", "L", "leaf switches of the NICs; 0: unknown"),
      option("chassis", integer, "0", "N", "nodes of a chassis, recorded in the inventory; 0: unknown"),
      option("metrics", list, "gemm,memory", "LIST",
             "globs on suite/case:metric, a number of device metrics, or suites"),
      option("between-cv", text, "0.5%", "CV",
             "spread of the true rates of healthy devices, e.g. 0.5% or 0.005"),
      option("uneven", text, "0%", "SHARE",
             "variation of that spread between metrics: 50% is factors 0.5 to 1.5"),
      option("within-cv", text, "0.2%", "CV", "spread of the samples of one device"),
      option("device-cv", text, "0%", "CV", "spread that all metrics of a device have in common"),
      option("node-cv", text, "0%", "CV", "spread that all devices of a node have in common"),
      option("run-cv", text, "0%", "CV", "spread of one device from run to run"),
      option("clock-cv", text, "0%", "CV",
             "spread of the devices' clocks; above 0 they are recorded as a covariate"),
      option("population", choice, "normal", "KIND", "distribution of the true rates of healthy devices",
             {"normal", "heavy", "bimodal", "models", "capped", "exponential", "lognormal"}),
      option("gap", text, "3%", "SIZE", "bimodal, models: by how much the second kind of node is faster"),
      option("share", text, "16%", "SHARE", "bimodal, models: share of nodes of the second kind"),
      option("noise", choice, "normal", "KIND", "distribution of the samples of one device",
             {"normal", "heavy"}),
      option("nic-cv", text, "0.3%", "CV", "spread of the capacities of healthy NICs"),
      option("link-cv", text, "1%", "CV", "spread of one link from round to round"),
      option("samples", integer, "10", "R", "samples per device and case"),
      option("rounds", integer, "0", "N",
             "rounds of pairs of nodes, of one tournament; 0: all up to 64 nodes, 12 beyond"),
      option("seed", integer, "1", "S", "seed of the machine: its true rates"),
      option("run", integer, "0", "K", "number of the run of that machine: its noise"),
      option("started", text, "", "TIME",
             "start of the run, ISO 8601 in UTC (2026-01-31T02:00:00Z); default: now"),
      option("history", path, "", "DIR", "earlier runs of the same seed, as for run"),
      option("level", choice, "standard", "LEVEL", "level recorded in the file",
             {"smoke", "quick", "standard", "extended"}),
      option("fault", text, "", "FAULT", "a fault, e.g. slow:node=17,device=3,percent=5"),
      option("output", path, "", "FILE", "results file to write"),
      option("force", flag, "", "", "replace an existing results file"),
      option("color", choice, "auto", "WHEN", "colour on standard output", {"auto", "always", "never"}),
      option("no-color", flag, "", "", "the same as --color never"),
  };
  for (OptionSpec& spec : options) {
    if (spec.name == "fault") spec.repeatable = true;
    if (spec.name == "output") spec.short_name = 'o';
    if (spec.name == "metrics") spec.help += " (" + suites + ")";
  }
  return options;
}

/// "0.5%" or "0.005" -> 0.005; from 0 to below 1.
double fraction(const OptionValues& values, const std::string& name) {
  std::string text = values.text(name);
  const bool percent = text.ends_with('%');
  const std::string typed = text;
  if (percent) text.pop_back();
  double value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw_usage(fmt::format("--{}: '{}' is no fraction (0.5% or 0.005)", name, typed));
  value = percent ? value / 100 : value;
  if (value < 0 || value >= 1) throw_usage(fmt::format("--{}: '{}' is not between 0 and 1", name, typed));
  return value;
}

/// Runs `step` and puts the name of the option before what it complains about.
template <typename Step>
auto naming(const std::string& name, Step step) {
  try {
    return step();
  } catch (const Error& e) {
    throw Error(e.kind(), "--" + name + ": " + e.what());
  }
}

simulate::Population population_of(const std::string& text) {
  using enum simulate::Population;
  for (const auto population : {normal, heavy, bimodal, models, capped, exponential, lognormal})
    if (text == simulate::to_string(population)) return population;
  throw Error(ErrorKind::internal, "no population " + text);
}

/// The metrics that `items` name, with what the suites of this build declare of them.
std::vector<simulate::MetricModel> metrics_of(const std::vector<std::string>& items, const Suites& suites) {
  const auto declared = declared_by(suites);
  auto metrics = simulate::pick_metrics(items, simulate::models_of(declared));
  simulate::describe(metrics, declared);
  return metrics;
}

simulate::Spec spec_of(const OptionValues& values, const Suites& suites) {
  simulate::Spec spec;
  spec.nodes = values.integer("nodes");
  spec.devices_per_node = values.integer("devices-per-node");
  if (values.has("nics-per-node")) {
    spec.nics_per_node = values.integer("nics-per-node");
    if (spec.nics_per_node < 1)
      throw_usage(fmt::format("--nics-per-node: {} is less than 1", spec.nics_per_node));
  }
  spec.leaves = values.integer("leaves");
  spec.nodes_per_chassis = values.integer("chassis");
  spec.metrics = naming("metrics", [&] { return metrics_of(values.list("metrics"), suites); });
  const std::pair<const char*, double*> fractions[] = {
      {"between-cv", &spec.between_cv}, {"within-cv", &spec.within_cv},
      {"run-cv", &spec.run_cv},         {"device-cv", &spec.device_cv},
      {"node-cv", &spec.node_cv},       {"uneven", &spec.uneven},
      {"clock-cv", &spec.clock_cv},     {"gap", &spec.gap},
      {"share", &spec.share},           {"nic-cv", &spec.nic_cv},
      {"link-cv", &spec.link_cv}};
  for (const auto& [name, value] : fractions) *value = fraction(values, name);
  spec.population = population_of(values.text("population"));
  spec.noise = values.text("noise") == "heavy" ? simulate::Noise::heavy : simulate::Noise::normal;
  spec.samples = values.integer("samples");
  spec.rounds = values.integer("rounds");
  spec.blocks = std::min<std::int64_t>(spec.blocks, std::max<std::int64_t>(1, spec.samples));
  for (const char* name : {"seed", "run"})
    if (values.integer(name) < 0)
      throw_usage(fmt::format("--{}: {} is less than 0", name, values.integer(name)));
  spec.seed = static_cast<std::uint64_t>(values.integer("seed"));
  spec.run = static_cast<std::uint64_t>(values.integer("run"));
  spec.level = values.text("level");
  spec.started = values.text("started");
  if (!spec.started.empty()) {
    const auto time = parse_iso(spec.started);
    if (!time)
      throw_usage("--started: '" + spec.started +
                  "' is not a valid ISO 8601 time, e.g. 2026-01-31T02:00:00Z");
    spec.started = iso_of(*time);
  }
  for (const std::string& text : values.list("fault"))
    spec.faults.push_back(naming("fault", [&] { return simulate::parse_fault(text); }));
  return spec;
}

std::string faults_help() {
  std::string out = "Faults are KIND:KEY=VALUE,... Kinds and their keys:\n";
  for (const auto& [name, text] : simulate::kinds_help()) out += wrapped("  " + name, text, 12);
  out += "Values of the keys, with their defaults:\n";
  for (const auto& [name, text] : simulate::keys_help()) out += wrapped("  " + name, text, 23);
  return out + wrapped("",
                       "slow:leaf acts on links between leaves only; traffic inside a leaf is not slowed. A "
                       "fault that changes no sample is a usage error, or with duty below 1 a reason for "
                       "INCONCLUSIVE.",
                       0);
}

}  // namespace

CommandSpec simulate_command_spec(const Suites& suites) {
  return {"simulate",
          "write the results file of a synthetic cluster, judge it",
          "assay simulate -o FILE [OPTIONS]",
          {},
          simulate_options(join(simulate::suites_of(simulate::models_of(declared_by(suites))))),
          {"assay simulate --nodes 64 --fault slow:node=17,percent=5 -o s.h5",
           "assay simulate --nodes 128 --leaves 8 --metrics p2p -o n.h5"},
          faults_help() + "Exit codes as of run: 0 PASS, 2 FAIL, 3 INCONCLUSIVE, 4 usage."};
}

ExitCode simulate_command(const Parsed& parsed, const std::string& command_line, const Suites& suites) {
  const OptionValues values = option_values(parsed);
  if (!values.has("output"))
    throw_usage("simulate: -o FILE is missing (usage: " + parsed.command->usage + ")");
  const std::string file = values.text("output");
  const bool none = values.flag("no-color");
  if (none && values.text("color") == "always") throw_usage("--no-color: contradicts --color always");
  const simulate::Spec spec = spec_of(values, suites);
  check_results_output("--output", file, values.flag("force"));
  verdict::Options judged_by;
  if (values.has("history")) verdict::References::load("", values.text("history")).put(judged_by);
  results::Results results = simulate::run(spec, judged_by);
  simulate::refuse_without_effect(spec, results);
  results.info.command_line = command_line;
  results::save(results, file, values.flag("force"));
  print(
      "simulated: synthetic data, no machine was measured\n" +
      report::summary(results, *results.verdict, file, output_style(none ? "never" : values.text("color"))));
  return static_cast<ExitCode>(results.verdict->exit_code);
}

}  // namespace assay::cli
