// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.hpp"

#include <chrono>
#include <csignal>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "assay/version.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/build_info.hpp"
#include "cli/command.hpp"
#include "cli/compare_command.hpp"
#include "cli/confine.hpp"
#include "cli/file_commands.hpp"
#include "cli/import_command.hpp"
#include "cli/list.hpp"
#include "cli/output.hpp"
#include "cli/report_command.hpp"
#include "cli/run_command.hpp"
#include "cli/simulate_command.hpp"
#include "device/device.hpp"

namespace assay {
namespace cli {
namespace {

ExitCode completion_command(const std::vector<CommandSpec>& commands, const Parsed& parsed) {
  const std::string& shell = parsed.positionals.front();
  if (shell != "bash")
    throw_usage(fmt::format("completion: '{}' is no shell with completion here (bash)", shell));
  print(bash_completion(commands));
  return ExitCode::pass;
}

/// An error that the session did not tell itself happened before MPI was up or with no rank to agree with:
/// what all ranks see alike is told once, what all ranks of a host see alike by the first of them, the rest
/// by whom it happened to.
void tell(const Error& e) {
  const auto wait = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  const std::string prefix = e.kind() == ErrorKind::internal ? "internal error: " : "";
  const bool alike = e.kind() == ErrorKind::usage || e.kind() == ErrorKind::data;
  if (!alike || speaks_for_all()) return print_error(prefix + e.what());
  // The launcher ends the others as soon as one leaves: the rank that prints gets the time for it.
  constexpr int to_print = 300, to_be_ended = 500;
  if (dynamic_cast<const HostError*>(&e) == nullptr) return wait(to_print);
  wait(to_be_ended);  // where the rank that speaks for all sees it, too
  if (launch_environment().local_rank <= 0) print_error(host_name() + ": " + e.what());
  wait(to_print);
}

/// What a file command reads: files, directories, or lists of them.
std::vector<std::string> inputs_of(const Parsed& parsed) {
  std::vector<std::string> inputs = parsed.positionals;
  for (const char* option : {"check", "baseline", "history"})
    if (parsed.given(option)) inputs.push_back(parsed.texts.at(option).front());
  return inputs;
}

/// `command` is called without arguments.
template <class Command>
ExitCode run_confined(const std::vector<std::string>& inputs, const Command& command, unsigned weight = 1) {
  return confined(
      inputs,
      [&] {
        try {
          return command();
        } catch (const Error& e) {
          tell(e);
          return e.exit_code();
        }
      },
      weight);
}

ExitCode dispatch(int argc, char** argv) {
  Suites suites = make_suites();
  const std::vector<CommandSpec> commands = make_commands(suites);
  const Parsed parsed = parse_arguments(commands, {argv + 1, argv + argc});
  if (parsed.version) {
    print(version_text());
    return ExitCode::pass;
  }
  if (parsed.help) {
    print(parsed.command == nullptr ? help_text(commands) : help_text(*parsed.command));
    return ExitCode::pass;
  }
  const std::string& name = parsed.command->name;
  if (name == "run" || name == "plan") return run_command(argc, argv, parsed, std::move(suites));
  if (name == "import")
    return without_rest(parsed, [&] {
      return run_confined(
          {parsed.positionals.begin() + 1, parsed.positionals.end()},
          [&] { return import_command(parsed, quoted_command_line(argc, argv)); }, 16);
    });
  if (name == "simulate") return simulate_command(parsed, quoted_command_line(argc, argv), suites);
  if (name == "list") {
    print(list_text(commands, suites, parsed.positionals.empty() ? "" : parsed.positionals.front()));
    return ExitCode::pass;
  }
  using FileCommand = ExitCode (*)(const Parsed&);
  const std::pair<const char*, FileCommand> file_commands[] = {
      {"inspect", inspect_command}, {"verdict", verdict_command}, {"compare", compare_command},
      {"export", export_command},   {"schema", schema_command},   {"recover", recover_command},
      {"report", report_command},   {"trend", trend_command}};
  for (const auto& [command, act] : file_commands) {
    if (name == command)
      return run_confined(inputs_of(parsed), [&act = act, &parsed] { return act(parsed); });
  }
  if (name == "man") {
    print(man_page(commands, ASSAY_VERSION));
    return ExitCode::pass;
  }
  if (name == "completion") return completion_command(commands, parsed);
  throw Error(ErrorKind::internal, "command " + name + " is not implemented");
}

}  // namespace
}  // namespace cli

int cli_main(int argc, char** argv) noexcept {
  try {
    // A reader of our output that goes away must not end a run; write errors are handled where they happen.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);  // what is written beyond a limit of file sizes fails with a reason
    std::signal(SIGCHLD, SIG_DFL);  // where a parent has it ignored, no child can be waited for
    if (argc > 1 && std::string(argv[1]) == "run") select_blas_core(argv);
    return static_cast<int>(cli::dispatch(argc, argv));
  } catch (const Error& e) {
    cli::tell(e);
    return static_cast<int>(e.exit_code());
  } catch (const std::exception& e) {
    cli::print_error(std::string("internal error: ") + e.what());
  } catch (...) {
    cli::print_error("internal error: unknown exception");
  }
  return static_cast<int>(ExitCode::internal);
}

}  // namespace assay
