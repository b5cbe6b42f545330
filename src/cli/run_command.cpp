// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/file_commands.hpp"
#include "cli/output.hpp"
#include "cli/run_report.hpp"
#include "cli/terminal.hpp"
#include "device/backend.hpp"
#include "report/report.hpp"
#include "results/writer.hpp"
#include "run/available_devices.hpp"
#include "run/fault_plan.hpp"
#include "run/launcher.hpp"
#include "run/plan_launched.hpp"
#include "run/plan_warnings.hpp"
#include "run/relauncher.hpp"
#include "run/run_file.hpp"
#include "run/session.hpp"
#include "topology/fabric.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {
namespace {

/// A suite's option on the command line says nothing when its suite does not run. In a file it may: one file
/// serves several runs. The share of the memory is that of all suites.
void check_suite_options(const Parsed& parsed, const Config& config) {
  for (const auto& [name, texts] : parsed.texts) {
    const auto dot = name.find('.');
    if (dot == std::string::npos || name == "memory.fraction") continue;
    const std::string suite = name.substr(0, dot);
    if (std::ranges::find(config.suites, suite) == config.suites.end()) {
      throw_usage(fmt::format("--{}: suite {} is not among --suites", name, suite));
    }
  }
}

/// Asks no runtime for its GPUs: one that is up in this process fails in the ranks that it forks.
void check_device(const Config& config) {
  for (const DeviceBackend* backend : device_backends()) {
    if (backend->name() == config.device && !backend->built())
      throw_usage(fmt::format("--device: {} is not built: {}", backend->name(), backend->description()));
  }
}

/// The program stands behind the words of a launcher; typed there as well, it would be given itself as
/// command.
void check_launcher(const std::string& command) {
  std::vector<std::string> words = launcher_words(command, {});
  if (words.size() > 1 && (words.back() == "run" || words.back() == "plan")) words.pop_back();
  const std::string last = std::filesystem::path(words.back()).filename();
  const bool value = words.size() > 1 && words[words.size() - 2].starts_with('-');  // srun -J assay
  if (last == std::filesystem::read_symlink("/proc/self/exe").filename() && !value)
    throw_usage(
        fmt::format("--launcher: leave out '{}': the program is appended to the launcher's command", last));
}

/// Each rank reads the file.
std::string text_of_option(const std::string& option, const std::string& file) {
  constexpr std::size_t most = std::size_t{256} << 20;  // cables of a large fabric
  if (auto text = read_text(file, most)) return *text;
  throw HostError(ErrorKind::usage,
                  fmt::format("{}: cannot read '{}': {}", option, file,
                              errno == EFBIG ? "it is larger than 256 MiB" : std::strerror(errno)));
}

/// How this process starts the ranks; nothing where it is one.
std::optional<Relaunch> relaunch_of(const Config& config, const Parsed& parsed) {
  Relaunch how;
  how.launcher = config.options.text("launcher");
  how.relaunches = static_cast<int>(std::clamp<std::int64_t>(config.options.integer("relaunch"), 0, 100));
  if (how.launcher == "none") return std::nullopt;
  if (how.launcher.empty()) {
    if (launch_environment().launched) return std::nullopt;
    how.local = local_launcher(local_machine(config.device == "host" ? 0 : count_gpus()));
    if (how.local.empty()) return std::nullopt;
  } else if (launch_environment().launched) {
    throw_usage("--launcher: this process has been started by one");
  } else {
    check_launcher(how.launcher);
  }
  how.arguments = relaunch_arguments(parsed);
  // The ranks see no terminal.
  how.arguments.insert(how.arguments.end(),
                       {"--color", output_style(config.color).color ? "always" : "never"});
  how.print = [](const std::string& text) { print(text); };
  how.print_time = [quiet = config.quiet](double ran_s, double budget_s) {
    if (!quiet) print(report::time_line(ran_s, budget_s));
  };
  return how;
}

}  // namespace

std::vector<std::string> relaunch_arguments(const Parsed& parsed) {
  std::set<std::string> said_otherwise{"launcher", "relaunch", "spent", "color", "no-color"};
  const bool plan = parsed.command->name == "plan";  // it is launched once
  if (!plan) said_otherwise.insert({"out", "exclude", "resume", "force"});
  std::vector<std::string> arguments;
  for (const OptionSpec& spec : parsed.command->options) {
    const auto at = parsed.texts.find(spec.name);
    if (at == parsed.texts.end() || said_otherwise.contains(spec.name)) continue;
    for (const std::string& text : at->second) {
      arguments.push_back("--" + spec.name + (text.empty() ? "" : "=" + text));
      if (text.empty()) arguments.emplace_back();  // "--NAME=" would take the next word
    }
  }
  // Not what a configuration file says.
  if (!plan && parsed.given("force") && !option_values(parsed).flag("force"))
    arguments.emplace_back("--force=false");
  return arguments;
}

Config resolve_config(const Parsed& parsed, const Suites& suites, const std::string& command_line) {
  std::map<std::string, std::vector<std::string>> file_texts;
  const OptionValues typed = option_values(parsed);
  if (typed.has("config")) {
    const std::string file = typed.text("config");
    file_texts = parse_toml_options(text_of_option("--config", file), file, parsed.command->options);
    // There it is the name of a run from its start. Otherwise the same file could not serve to resume it.
    if (typed.has("resume") && !typed.has("out")) file_texts.erase("out");
  }
  std::vector<std::string> names, hidden;
  for (const auto& suite : suites) (suite->hidden() ? hidden : names).emplace_back(suite->name());
  Config config = make_config(option_values(parsed, file_texts), names, hidden);
  config.command_line = command_line;
  check_suite_options(parsed, config);
  check_device(config);
  check_targets(config.faults, suites);
  check_required(config.require, suites);
  if (!config.topology_file.empty()) {
    config.topology_text = text_of_option("--topology", config.topology_file);
    parse_fabric(config.topology_text, config.topology_file);
  }
  if (!config.limits_file.empty()) {
    config.limits_text = text_of_option("--limits", config.limits_file);
    verdict::SuiteMetrics known;
    for (const auto& suite : suites) known[std::string(suite->name())] = suite->metrics();
    verdict::check_limits(config.limits_text, config.limits_file, known);
  }
  return config;
}

namespace {

/// What a run reads and writes. Only where these files will be written; elsewhere the folder may not exist.
void check_files(const Config& config) {
  if (!speaks_for_all()) return;
  std::vector<std::string> inputs = references_of(config.options);
  for (const char* name : {"topology", "config", "exclude", "only", "resume"})
    inputs.push_back(config.options.text(name));
  std::vector<Output> outputs = outputs_of(config.options);
  check_outputs(outputs, inputs);
  outputs.push_back({"--out", config.out});
  check_distinct(outputs);
  for (const char* name : {"baseline", "history"}) {
    if (config.options.has(name) && access(config.options.text(name).c_str(), R_OK) != 0)
      throw_usage(fmt::format("--{}: cannot read '{}'", name, config.options.text(name)));
  }
}

/// What a run finds out when it makes its file.
void check_out(const Config& config) {
  if (!speaks_for_all() || !config.options.has("out")) return;
  const std::string file = file_of_segment(config, 1).string();
  check_results_output("--out", file, config.force);
  if (!config.force) results::check_no_partial(file);
}

}  // namespace

ExitCode run_command(int argc, char** argv, const Parsed& parsed, Suites suites) {
  const Config config = resolve_config(parsed, suites, quoted_command_line(argc, argv));
  const auto how = relaunch_of(config, parsed);
  if (parsed.command->name == "plan") {
    if (how) return plan_launched(*how);
    check_files(config);
    check_out(config);
    return plan_session(&argc, &argv, config, std::move(suites),
                        [](const std::string& text) { print(text); });
  }
  if (how) return code_with_drift(config, run_relaunched(config, *how));
  check_files(config);
  RunHooks hooks;
  RunReports reports(config);
  hooks.report = [&](const RunReport& run) { return reports.tell(run); };
  return run_session(&argc, &argv, config, std::move(suites), hooks);
}

}  // namespace assay::cli
