// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/import_command.hpp"
#include "cli/simulate_command.hpp"
#include "config/config.hpp"

namespace assay::cli {
namespace {

constexpr const char* exit_codes =
    "Exit codes: 0 PASS, 1 WARN with --strict, 2 FAIL, 3 INCONCLUSIVE, 4 usage or\n"
    "configuration error, 5 internal error.";
constexpr const char* file_exit_codes =
    "Exit codes: 0, 3 when the output cannot be written, 4 when the input cannot be\nread.";

OptionSpec shared(const std::string& name) {
  for (const OptionSpec& option : run_options()) {
    if (option.name == name) return option;
  }
  return {};
}

OptionSpec make_option(const char* name, OptionKind kind, const char* value_name, const char* help,
                       char short_name = 0) {
  OptionSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.value_name = value_name;
  spec.help = help;
  spec.short_name = short_name;
  return spec;
}

OptionSpec with_default(OptionSpec spec, std::string text, std::vector<std::string> allowed = {}) {
  spec.default_text = std::move(text);
  spec.allowed = std::move(allowed);
  return spec;
}

std::vector<OptionSpec> measuring_options(const Suites& suites) {
  std::vector<OptionSpec> options = run_options();
  for (OptionSpec& option : options) {
    if (option.name != "suites") continue;
    for (const auto& suite : suites) {
      if (!suite->hidden()) option.allowed.emplace_back(suite->name());
    }
  }
  for (const auto& suite : suites) {
    for (OptionSpec option : suite->options()) {
      option.hidden = option.hidden || suite->hidden();
      options.push_back(std::move(option));
    }
  }
  return options;
}

CommandSpec run_command_spec(const Suites& suites) {
  return {"run",
          "run suites on all MPI ranks, write and judge the results file",
          "assay run [OPTIONS]",
          {},
          measuring_options(suites),
          {"mpirun -n 4 assay run", "mpirun -n 64 assay run --level extended --limits contract.toml",
           "assay run --level smoke --suites gemm,memory --out node07.h5",
           "mpirun -n 2 assay run --suites gemm --gemm.dtypes fp32"},
          exit_codes};
}

CommandSpec plan_command_spec(const Suites& suites) {
  auto options = measuring_options(suites);
  const auto suites_begin = options.begin() + static_cast<std::ptrdiff_t>(run_options().size());
  std::vector<OptionSpec> of_plan{
      make_option("as-nodes", OptionKind::integer, "N",
                  "plan for N nodes like this one: node001, node002, ..."),
      make_option("pairs", OptionKind::flag, "", "also print every measured pair with its case and round")};
  // `run` does not have them, and has the same plan.
  for (OptionSpec& spec : of_plan) spec.use = OptionUse::presentation;
  options.insert(suites_begin, of_plan.begin(), of_plan.end());
  return {"plan",
          "print stages, cases, bytes and time of a run without running it",
          "assay plan [OPTIONS]",
          {},
          std::move(options),
          {"mpirun -n 4 assay plan --level standard", "assay plan --suites memory --cases 'memory/triad*'",
           "mpirun -n 8 assay plan --suites p2p --as-nodes 64 --pairs"},
          "Options are those of run, so that the same command line can be planned."};
}

CommandSpec list_command_spec() {
  return {"list",
          "list suites, cases, metrics, options and devices of this build",
          "assay list [WHAT]",
          {{"WHAT",
            "only this part; everything when not given",
            false,
            {"suites", "metrics", "options", "devices", "transports", "cases"}}},
          {},
          {"assay list", "assay list cases", "assay list metrics"},
          "Cases depend on the machine: they are listed for two ranks on this one."};
}

CommandSpec inspect_command_spec() {
  return {"inspect",
          "print the content of a results file",
          "assay inspect FILE",
          {{"FILE", "results file, or the .partial directory of a run", true, {}}},
          {shared("color"), shared("no-color")},
          {"assay inspect q.h5"},
          file_exit_codes};
}

CommandSpec verdict_command_spec() {
  return {"verdict",
          "judge one results file again, or several together",
          "assay verdict FILE|DIR [OPTIONS]",
          {{"FILE", "results file, .partial directory of a run, or directory with results files", true, {}}},
          {shared("strict"), shared("limits"), shared("baseline"), shared("history"), shared("require"),
           shared("json"), shared("junit"), shared("nodes"), shared("coverage"), shared("prometheus"),
           shared("report"),
           make_option("explain", OptionKind::text, "NAME",
                       "print the evidence about one node, device, NIC or link"),
           make_option("write-limits", OptionKind::path, "FILE",
                       "propose a file for --limits from this run, if it is PASS or WARN"),
           shared("color"), shared("no-color")},
          {"assay verdict q.h5", "assay verdict q.h5 --explain node07/gpu3", "assay verdict soak/",
           "assay verdict q.h5 --limits contract.toml --nodes nodes.txt"},
          exit_codes};
}

CommandSpec compare_command_spec() {
  return {"compare",
          "compare two sets of runs by node, with confidence intervals",
          "assay compare A B [OPTIONS]",
          {{"A", "results file, files separated by commas, or directory with results files", true, {}},
           {"B", "the same, to be compared with A", true, {}}},
          {with_default(make_option("margin", OptionKind::text, "PERCENT",
                                    "smaller changes of the rate count as SAME"),
                        "1%"),
           with_default(make_option("unit", OptionKind::choice, "WHAT", "unit of the comparison"), "node",
                        {"node", "device"}),
           with_default(
               make_option("cases", OptionKind::text, "GLOB", "compare only cases whose suite/name matches"),
               "*"),
           make_option("ignore-case-key", OptionKind::flag, "",
                       "compare in spite of different libraries, algorithms or paths, e.g. of vendors"),
           make_option("json", OptionKind::path, "FILE", "write the comparison as JSON"), shared("color"),
           shared("no-color")},
          {"assay compare before.h5 after.h5", "assay compare monday/ tuesday/ --cases 'memory/*'",
           "assay compare a1.h5,a2.h5 b1.h5,b2.h5 --margin 0.5%"},
          "Exit codes: 0 SAME or FASTER, 1 SLOWER, 3 AMBIGUOUS, INCOMPARABLE or\n"
          "INSUFFICIENT (fewer than four nodes or runs a side), 4 when the input cannot be\nread."};
}

CommandSpec export_command_spec() {
  return {
      "export",
      "write every sample as CSV or JSON lines, or one table of states",
      "assay export FILE --csv|--jsonl|--table [-o OUT]",
      {{"FILE", "results file, or the .partial directory of a run", true, {}}},
      {make_option("csv", OptionKind::flag, "", "every sample, comma separated"),
       make_option("jsonl", OptionKind::flag, "", "every sample and finding, one JSON object per line"),
       make_option("table", OptionKind::flag, "", "one row per node, device and NIC with its state"),
       make_option("output", OptionKind::path, "OUT", "write to this file instead of standard output", 'o'),
       shared("color"), shared("no-color")},
      {"assay export q.h5 --csv -o q.csv", "assay export q.h5 --table"},
      file_exit_codes};
}

CommandSpec schema_command_spec() {
  return {"schema",
          "print the schema of results files; check a file against it",
          "assay schema [--check FILE]",
          {},
          {make_option("check", OptionKind::path, "FILE", "print the errors of this file")},
          {"assay schema", "assay schema --check q.h5"},
          "Exit codes: 0, 1 when the file breaks the schema, 4 when it cannot be read."};
}

CommandSpec recover_command_spec() {
  OptionSpec force = shared("force");
  return {"recover",
          "make the results file of a crashed run",
          "assay recover PARTIAL -o FILE [--force]",
          {{"PARTIAL", "the directory FILE.h5.partial of the run", true, {}}},
          {make_option("output", OptionKind::path, "FILE", "results file to write", 'o'), force},
          {"assay recover q.h5.partial -o q.h5"},
          "Exit codes: 0; 3 when parts of it are unreadable (skipped) or the file breaks\n"
          "the schema (both keep the directory), or the file cannot be written; 4 when\n"
          "the run's plan in it cannot be read."};
}

CommandSpec report_command_spec() {
  return {"report",
          "write an HTML page of a run",
          "assay report RUN... -o FILE [OPTIONS]",
          {{"RUN",
            "results file, or a directory with results files; with several, the last is reported and "
            "compared with the others",
            true,
            {},
            true}},
          {make_option("output", OptionKind::path, "FILE", "HTML file to write; needs no network", 'o'),
           make_option("markdown", OptionKind::flag, "", "write a short Markdown text instead"),
           make_option("strict", OptionKind::flag, "", "show exit code 1 for a run with warnings"),
           shared("limits"), shared("baseline"), shared("history"), shared("require")},
          {"assay report q.h5 -o q.html", "assay report before.h5 after.h5 -o change.html",
           "assay report nights/ -o nights.html", "assay report q.h5 --markdown -o q.md"},
          "States and numbers are those of assay verdict. Of a directory: its newest run,\n"
          "even if unfinished, with the verdict and the history of all its runs.\n"
          "Exit codes: 0, 3 when the page cannot be written, 4 when an input cannot be\n"
          "read."};
}

CommandSpec trend_command_spec() {
  return {"trend",
          "write an HTML page over many runs: metrics and their changes",
          "assay trend DIR -o FILE",
          {{"DIR", "directory with results files, or files separated by commas", true, {}}},
          {make_option("output", OptionKind::path, "FILE", "HTML file to write; needs no network", 'o')},
          {"assay trend /data/nightly -o trend.html"},
          "Lasting changes are sought in metrics with five or more runs.\n"
          "Exit codes: 0, 3 when the page cannot be written, 4 for unreadable input or\n"
          "fewer than two runs."};
}

CommandSpec completion_command_spec() {
  return {"completion",
          "print the completion script of a shell",
          "assay completion bash",
          {{"SHELL", "bash", true, {"bash"}}},
          {},
          {"source <(assay completion bash)"},
          ""};
}

CommandSpec man_command_spec() {
  return {"man", "print the manual page", "assay man", {}, {}, {"assay man | man -l -"}, ""};
}

}  // namespace

std::vector<CommandSpec> make_commands(const Suites& suites) {
  return {run_command_spec(suites),      plan_command_spec(suites), list_command_spec(),
          inspect_command_spec(),        verdict_command_spec(),    compare_command_spec(),
          export_command_spec(),         schema_command_spec(),     recover_command_spec(),
          simulate_command_spec(suites), import_command_spec(),     report_command_spec(),
          trend_command_spec(),          completion_command_spec(), man_command_spec()};
}

}  // namespace assay::cli
