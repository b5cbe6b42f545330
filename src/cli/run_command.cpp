// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/build_info.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"
#include "report/report.hpp"
#include "run/session.hpp"
#include "topology/fabric.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {
namespace {

/// A suite's option on the command line says nothing when its suite does not run. In a file it may: one file
/// serves several runs.
void check_suite_options(const Parsed& parsed, const Config& config) {
  for (const auto& [name, texts] : parsed.texts) {
    const auto dot = name.find('.');
    if (dot == std::string::npos) continue;
    const std::string suite = name.substr(0, dot);
    if (std::ranges::find(config.suites, suite) == config.suites.end()) {
      throw_usage(fmt::format("--{}: suite {} is not among --suites", name, suite));
    }
  }
}

void check_device(const Config& config) {
  for (const Component& device : device_components()) {
    if (device.name == config.device && !device.built)
      throw_usage(fmt::format("--device: {} is {}", device.name, device.detail));
  }
}

struct SmallFile {
  std::string option, file;
  std::string (*content)(const results::Results&, const results::VerdictData&);
};

std::vector<SmallFile> small_files(const Config& config) {
  std::vector<SmallFile> files;
  for (const report::MachineOutput& output : report::machine_outputs()) {
    if (config.options.has(output.option))
      files.push_back({std::string("--") + output.option, config.options.text(output.option), output.content});
  }
  return files;
}

/// Prints and writes all that can be, then throws for the first that could not.
void report_run(const Config& config, const RunReport& run) {
  std::optional<Error> first_error;
  const auto attempt = [&](const auto& step) {
    try {
      step();
    } catch (const Error& e) {
      if (!first_error) first_error = e;
    }
  };
  for (const SmallFile& f : small_files(config)) {
    attempt([&] {
      write_file(f.option, f.file, [&](std::ostream& out) { out << f.content(run.results, run.verdict); });
    });
  }
  attempt([&] {
    const report::Style style = output_style(config.color);
    print(config.quiet ? report::verdict_text(run.verdict, style)
                       : report::summary(run.results, run.verdict, run.file, style));
  });
  if (first_error) throw Error(*first_error);
}

}  // namespace

Config resolve_config(const Parsed& parsed, const Suites& suites, const std::string& command_line) {
  std::map<std::string, std::vector<std::string>> file_texts;
  const OptionValues typed = option_values(parsed);
  if (typed.has("config")) {
    const std::string file = typed.text("config");
    if (!read_text(file)) throw_usage(fmt::format("--config: cannot read '{}'", file));
    file_texts = read_toml_options(file, parsed.command->options);
  }
  std::vector<std::string> names, hidden;
  for (const auto& suite : suites) (suite->hidden() ? hidden : names).emplace_back(suite->name());
  Config config = make_config(option_values(parsed, file_texts), names, hidden);
  config.command_line = command_line;
  check_suite_options(parsed, config);
  check_device(config);
  if (!config.topology_file.empty()) {
    const auto text = read_text(config.topology_file);
    if (!text) throw_usage(fmt::format("--topology: cannot read '{}'", config.topology_file));
    config.topology_text = *text;
    parse_fabric(config.topology_text, config.topology_file);
  }
  if (!config.limits_file.empty()) {
    const auto text = read_text(config.limits_file);
    if (!text) throw_usage(fmt::format("--limits: cannot read '{}'", config.limits_file));
    config.limits_text = *text;
    std::vector<verdict::KnownMetric> known;
    for (const auto& suite : suites)
      for (const MetricInfo& m : suite->metrics()) known.push_back({std::string(suite->name()), m.metric, m.unit});
    verdict::check_limits(config.limits_text, config.limits_file, known);
  }
  return config;
}

ExitCode run_command(int argc, char** argv, const Parsed& parsed, Suites suites) {
  const Config config = resolve_config(parsed, suites, quoted_command_line(argc, argv));
  if (parsed.command->name == "plan") {
    return plan_session(&argc, &argv, config, std::move(suites),
                        [](const std::string& text) { print(text); });
  }
  if (speaks_for_all()) {
    // Only where these files will be written; elsewhere the folder may not exist.
    for (const SmallFile& f : small_files(config)) check_writable(f.option, f.file);
    for (const char* name : {"baseline", "history"}) {
      if (config.options.has(name) && access(config.options.text(name).c_str(), R_OK) != 0)
        throw_usage(fmt::format("--{}: cannot read '{}'", name, config.options.text(name)));
    }
  }
  RunHooks hooks;
  hooks.report = [&config](const RunReport& run) { report_run(config, run); };
  return run_session(&argc, &argv, config, std::move(suites), hooks);
}

}  // namespace assay::cli
