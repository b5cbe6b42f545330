// SPDX-License-Identifier: Apache-2.0
#include "cli/file_commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.hpp"
#include "base/system.hpp"
#include "cli/output.hpp"
#include "cli/report_command.hpp"
#include "cli/terminal.hpp"
#include "config/suggest.hpp"
#include "report/explain.hpp"
#include "report/report.hpp"
#include "results/export.hpp"
#include "results/reader.hpp"
#include "results/schema.hpp"
#include "results/writer.hpp"
#include "verdict/explain.hpp"
#include "verdict/history_index.hpp"
#include "verdict/join.hpp"
#include "verdict/propose_limits.hpp"
#include "verdict/references.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {
namespace fs = std::filesystem;

verdict::Options verdict_options(const results::Results& results, const OptionValues& values,
                                 const verdict::References& references) {
  verdict::Options options = verdict::options_from(results);
  references.put(options);
  options.strict = options.strict || values.flag("strict");
  if (values.has("require")) options.require = values.list("require");
  if (!values.has("limits")) return options;
  options.limits_name = values.text("limits");
  const auto text = read_text(options.limits_name);
  if (!text)
    throw_usage(fmt::format("--limits: cannot read '{}': {}", options.limits_name, std::strerror(errno)));
  options.limits_text = *text;
  verdict::check_limits(options.limits_text, options.limits_name);
  return options;
}

bool is_collection(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && !fs::exists(fs::path(path) / "plan.json", ignored) &&
         !path.ends_with(".partial") && !path.ends_with(".partial/");
}

namespace {

struct Judged {
  results::Results results;
  results::VerdictData verdict;
};

Judged judge_one(const std::string& file, const OptionValues& values, const verdict::References& references) {
  results::Results results = results::load(file);
  auto verdict = verdict::judge(results, verdict_options(results, values, references));
  return {std::move(results), std::move(verdict)};
}

Judged judge_joined(const std::string& directory, const OptionValues& values,
                    const verdict::References& references) {
  const JudgedDirectory all = judge_directory(directory, values, references);
  return {all.join.results(), all.join.verdict(all.strict)};
}

/// The results files of a directory by name, with partial directories.
std::vector<fs::path> files_of(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator entry(directory, failed); !failed && entry != fs::directory_iterator();
       entry.increment(failed)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".h5") || name.ends_with(".h5.partial")) files.push_back(entry->path());
  }
  if (failed) throw Error(ErrorKind::data, directory + ": cannot be read: " + failed.message());
  if (files.empty())
    throw Error(ErrorKind::data, directory + ": no results file (NAME.h5 or NAME.h5.partial) is in it");
  std::ranges::sort(files);
  return files;
}

/// A file among those that hold its run: a copy, NAME.h5 beside the NAME.h5.partial that it was recovered
/// from, or the file of a run beside that of its continuation.
struct FileOfRun {
  fs::path file;
  std::int64_t ended = 0;  ///< cases
  bool complete = false;
  bool better_than(const FileOfRun& other) const {
    return std::tie(ended, complete) > std::tie(other.ended, other.complete);
  }
};

using LeftOut = std::map<fs::path, fs::path>;  ///< and the file that counts instead

/// Nothing where a file turns out to be better than an earlier one of its run, which is left out from then
/// on.
std::optional<JudgedDirectory> judge_files(const std::vector<fs::path>& files, const OptionValues& values,
                                           const verdict::References& references, LeftOut& left_out) {
  JudgedDirectory all{{}, values.flag("strict")};
  std::map<std::tuple<std::string, std::string, std::string>, FileOfRun> known;
  for (const fs::path& file : files) {
    if (left_out.contains(file)) continue;
    const Judged one = judge_one(file.string(), values, references);
    const auto& info = one.results.info;
    const auto& counts = one.verdict.accounting;
    const FileOfRun now{file, counts.passed + counts.failed + counts.error, file.extension() == ".h5"};
    // Two simulated runs of one seed differ in their plans only.
    const auto [at, fresh] = known.try_emplace({info.run_id, info.started, info.plan_hash}, now);
    if (!fresh && !info.run_id.empty()) {
      const bool better = now.better_than(at->second);
      left_out[better ? at->second.file : file] = better ? file : at->second.file;
      if (better) return std::nullopt;
      continue;
    }
    all.strict = all.strict || verdict::options_from(one.results).strict;
    all.join.add(file.filename().string(), one.results, one.verdict);
  }
  for (const auto& [file, instead] : left_out) {
    fs::path counted = instead;  // or a better one
    while (left_out.contains(counted)) counted = left_out.at(counted);
    all.join.leave_out(file.filename().string(), counted.filename().string());
  }
  return all;
}

}  // namespace

JudgedDirectory judge_directory(const std::string& directory, const OptionValues& values,
                                const verdict::References& references) {
  const std::vector<fs::path> files = files_of(directory);
  LeftOut left_out;
  while (true)
    if (auto all = judge_files(files, values, references, left_out)) return std::move(*all);
}

report::Style style_of(const OptionValues& values) {
  const bool none = values.flag("no-color");
  if (none && values.text("color") == "always") throw_usage("--no-color: contradicts --color always");
  return output_style(none ? "never" : values.text("color"));
}

std::vector<Output> outputs_of(const OptionValues& values) {
  std::vector<std::string> options{"report", "write-limits"};
  for (const report::MachineOutput& output : report::machine_outputs()) options.emplace_back(output.option);
  std::vector<Output> outputs;
  for (const std::string& option : options)
    if (values.has(option)) outputs.push_back({"--" + option, values.text(option)});
  return outputs;
}

std::vector<std::string> references_of(const OptionValues& values) {
  return {values.text("limits"), values.text("baseline"), values.text("history")};
}

void check_given_once(const std::string& command, const std::vector<verdict::Snapshot>& runs,
                      const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs)
    for (const std::string& name : verdict::names_of(input))
      if (is_collection(name)) return;
  std::map<std::pair<std::string, std::string>, std::string> seen;
  for (const auto& run : runs) {
    const auto [at, fresh] = seen.insert({{run.source.run_id, run.source.started}, run.source.file});
    if (!fresh)
      throw_usage(fmt::format("{}: {} is given twice{}: it is one run", command, run.source.file,
                              at->second == run.source.file ? "" : fmt::format(", also as {}", at->second)));
  }
}

void write_outputs(const OptionValues& values, const results::Results& results,
                   const results::VerdictData& verdict, const std::function<std::string()>& page,
                   Attempts& attempt) {
  const auto write = [&](const std::string& option, const auto& make) {
    if (!values.has(option)) return;
    attempt([&] {
      const std::string content = make();
      write_file("--" + option, values.text(option), [&](std::ostream& out) { out << content; });
    });
  };
  for (const report::MachineOutput& output : report::machine_outputs())
    write(output.option, [&] { return output.content(results, verdict); });
  write("report", page);
}

ExitCode inspect_command(const Parsed& parsed) {
  const report::Style style = style_of(option_values(parsed));
  const std::string& file = parsed.positionals.front();
  print(report::inspect_text(results::load(file), file, style));
  return ExitCode::pass;
}

namespace {

/// --write-limits: only from a good run, and whole or not at all. Returns what to tell of limits that the
/// next run may well break.
std::string write_limits(const std::string& file, const std::string& input, const Judged& judged) {
  const std::string& state = judged.verdict.state;
  if (state != "PASS" && state != "WARN")
    throw_usage(
        fmt::format("--write-limits: {} is {}: limits come from a run that is PASS or WARN", input, state));
  const verdict::ProposedLimits proposed = verdict::propose_limits(judged.results, input, state);
  verdict::check_limits(proposed.text, file);
  write_file("--write-limits", file, [&](std::ostream& out) { out << proposed.text; });
  if (proposed.uncertain.empty()) return "";
  constexpr std::size_t most = 5;
  const auto& names = proposed.uncertain;
  return fmt::format("{}: {} of {} limits are uncertain: {}{}\n", file, names.size(), proposed.count,
                     fmt::join(names.begin(), names.begin() + std::min(most, names.size()), ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

/// --explain: the evidence about one part, instead of all findings.
std::string explained(const std::string& name, const std::string& input, const Judged& judged,
                      const verdict::Options& options, const report::Style& style) {
  const auto explanation = verdict::explain(judged.results, judged.verdict, options, name);
  if (explanation) return report::explain_text(*explanation, style);
  std::vector<std::string> names;
  for (const auto& e : judged.results.entities) names.push_back(e.name);
  throw_usage(
      fmt::format("--explain: nothing in {} is called '{}'{}", input, name, did_you_mean(name, names)));
}

}  // namespace

ExitCode verdict_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  const report::Style style = style_of(values);
  const std::string& file = parsed.positionals.front();
  std::vector<std::string> inputs = references_of(values);
  inputs.push_back(file);
  check_outputs(outputs_of(values), inputs);
  const auto references = verdict::References::load(values.text("baseline"), values.text("history"));
  const bool collection = is_collection(file);
  for (const char* option : {"write-limits", "explain"})
    if (collection && values.has(option))
      throw_usage(fmt::format("--{}: needs one results file, '{}' is a directory", option, file));
  const Judged judged =
      collection ? judge_joined(file, values, references) : judge_one(file, values, references);
  const auto& [results, verdict] = judged;
  std::string text;
  if (values.has("explain"))
    text =
        explained(values.text("explain"), file, judged, verdict_options(results, values, references), style);
  Attempts attempt;
  const auto page = [&] {
    return collection ? report_directory(file, values, references)
                      : report_page(file, results, verdict_options(results, values, references));
  };
  write_outputs(values, results, verdict, page, attempt);
  std::string limits;
  if (values.has("write-limits"))
    attempt([&] { limits = write_limits(values.text("write-limits"), file, judged); });
  // The last line tells the code that this process ends with, so it comes last.
  results::VerdictData told = verdict;
  told.exit_code = attempt.worse(verdict.exit_code);
  text = values.has("explain") ? text + fmt::format("{} (exit {})\n", told.state, told.exit_code)
                               : report::verdict_text(told, style);
  text = limits + text;
  // It must not look like a run.
  if (results.config.contains("simulated"))
    text = "simulated: synthetic data, no machine was measured\n" + text;
  attempt([&] { print(text); });
  return attempt.code(verdict.exit_code);
}

ExitCode export_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  const report::Style style = style_of(values);
  const auto forms = values.flag("csv") + values.flag("jsonl") + values.flag("table");
  if (forms != 1) throw_usage("export: needs exactly one of --csv, --jsonl, --table");
  const std::string& file = parsed.positionals.front();
  const std::string output = values.text("output");
  if (!output.empty()) check_outputs({{"--output", output}}, {file});
  const results::Results results = results::load(file);
  const auto write = [&](std::ostream& out) {
    if (values.flag("csv")) {
      results::export_csv(results, out);
    } else if (values.flag("jsonl")) {
      results::export_jsonl(results, out);
    } else {
      const auto verdict =
          results.verdict ? *results.verdict : verdict::judge(results, verdict::options_from(results));
      report::Style plain = style;
      if (!output.empty()) plain.color = false;
      out << report::table_text(results, verdict, plain);
    }
  };
  if (output.empty())
    print_with(write);
  else
    write_file("--output", output, write);
  return ExitCode::pass;
}

ExitCode schema_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  if (!values.has("check")) {
    const std::string& text = results::schema_text();
    print(text.ends_with('\n') ? text : text + "\n");
    return ExitCode::pass;
  }
  const std::string file = values.text("check");
  const std::vector<std::string> problems = results::check_file(file);
  std::string text;
  for (const std::string& problem : problems) text += fmt::format("{}: {}\n", file, problem);
  if (problems.empty()) text = fmt::format("{}: valid\n", file);
  print(text);
  return problems.empty() ? ExitCode::pass : ExitCode::warn;  // 1 = invalid
}

ExitCode recover_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  if (!values.has("output"))
    throw_usage("recover: -o FILE is missing (usage: " + parsed.command->usage + ")");
  const std::string output = values.text("output");
  check_outputs({{"--output", output}}, parsed.positionals);
  const std::string& partial = parsed.positionals.front();
  const results::Recovered recovered = results::recover(partial, output, values.flag("force"));
  const std::size_t skipped = recovered.skipped_cases;
  const std::string lacks = skipped == 0 ? "some events or readings could not be read and were skipped"
                            : skipped == 1
                                ? "1 case could not be read and was skipped"
                                : fmt::format("{} cases could not be read and were skipped", skipped);
  std::string text = output + ": recovered";
  if (recovered.damaged) text += "; " + lacks;
  if (!recovered.problem.empty()) text += "; it does not pass 'assay schema --check': " + recovered.problem;
  if (!recovered.complete()) text += fmt::format("; {} is kept", partial);
  print(text + "\n");
  return recovered.complete() ? ExitCode::pass : ExitCode::inconclusive;
}

}  // namespace assay::cli
