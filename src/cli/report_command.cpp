// SPDX-License-Identifier: Apache-2.0
#include "cli/report_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "cli/file_commands.hpp"
#include "cli/output.hpp"
#include "report/html/page.hpp"
#include "results/reader.hpp"
#include "verdict/history_index.hpp"
#include "verdict/join.hpp"
#include "verdict/judgement.hpp"
#include "verdict/references.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// The last part of a path: where a file lies is no property of it.
std::string name_of(const std::string& path) {
  fs::path p(path);
  if (!p.has_filename()) p = p.parent_path();
  return p.filename().string();
}

/// Runs of the history and this one, by start; this one once.
std::vector<verdict::Snapshot> runs_with(std::vector<verdict::Snapshot> runs,
                                         const verdict::Judgement& judgement, const std::string& file) {
  verdict::Snapshot now = verdict::snapshot_of(judgement, name_of(file));
  std::erase_if(runs, [&](const auto& r) {
    return r.source.run_id == now.source.run_id || r.source.started > now.source.started;
  });
  runs.push_back(std::move(now));
  return runs;
}

struct Extras {
  std::vector<verdict::Snapshot> earlier;
  std::vector<verdict::Snapshot> compared;  ///< A of the comparison
  std::vector<verdict::Snapshot> with;      ///< B, where it is more than the page's run
  std::optional<report::JointRuns> joint;
  bool markdown = false;
};

std::string page_of(const std::string& file, const results::Results& results, const verdict::Options& options,
                    Extras extras) {
  auto hash = std::async(std::launch::async,
                         [&] { return sha256_of_file(file); });  // as long as judging, of a large file
  verdict::Judgement judgement(results, options);
  const auto verdict = verdict::judge_all(judgement);
  report::PageInput input{name_of(file),           "",           results, judgement, verdict, {},
                          std::move(extras.joint), std::nullopt, {},      nullptr};
  if (!extras.earlier.empty() || !extras.compared.empty())
    input.runs = runs_with(std::move(extras.earlier), judgement, file);
  if (!extras.compared.empty()) {
    if (extras.with.empty()) extras.with.push_back(input.runs.back());
    input.comparison = verdict::compare(extras.compared, extras.with, input.compare_options);
  }
  if (input.runs.size() > 1)
    input.previous = &input.runs[input.runs.size() - 2];
  else if (!extras.compared.empty())
    input.previous = &extras.compared.back();
  input.sha256 = hash.get();
  return extras.markdown ? report::page_markdown(input) : report::page_html(input);
}

/// The page of the newest run of a directory, with the verdict over all of them; without another set to
/// compare with, the newest run is compared with those before it. The newest may be one that was left
/// unfinished.
std::string page_of_directory(const std::string& directory, const OptionValues& values,
                              const verdict::References& references, Extras extras) {
  const JudgedDirectory all = judge_directory(directory, values, references);
  std::vector<verdict::Snapshot> runs = all.join.segments();
  const std::string file = (fs::path(directory) / runs.back().source.file).string();
  if (extras.compared.empty())
    extras.compared.assign(runs.begin(), std::prev(runs.end()));
  else
    extras.with = runs;
  extras.joint = report::JointRuns{name_of(directory), all.join.runs(), all.join.verdict(all.strict)};
  std::ranges::stable_sort(extras.joint->runs, {}, &verdict::JoinedRun::started);
  for (auto& run : runs) extras.earlier.push_back(std::move(run));
  verdict::leave_out_copies(extras.earlier);
  std::ranges::stable_sort(extras.earlier, {}, [](const auto& r) { return r.source.started; });
  const results::Results results = results::load(file);
  return page_of(file, results, verdict_options(results, values, references), std::move(extras));
}

}  // namespace

std::string report_page(const std::string& file, const results::Results& results,
                        const verdict::Options& options) {
  Extras extras;
  if (options.earlier) extras.earlier = *options.earlier;
  return page_of(file, results, options, std::move(extras));
}

std::string report_directory(const std::string& directory, const OptionValues& values,
                             const verdict::References& references) {
  Extras extras;
  if (references.earlier) extras.earlier = *references.earlier;
  return page_of_directory(directory, values, references, std::move(extras));
}

ExitCode report_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  if (!values.has("output")) throw_usage("report: -o FILE is missing (usage: " + parsed.command->usage + ")");
  const std::string output = values.text("output");
  std::vector<std::string> inputs = references_of(values);
  inputs.insert(inputs.end(), parsed.positionals.begin(), parsed.positionals.end());
  check_outputs({{"--output", output}}, inputs);
  const auto references = verdict::References::load(values.text("baseline"), values.text("history"));
  Extras extras;
  extras.markdown = values.flag("markdown");
  if (references.earlier) extras.earlier = *references.earlier;
  // The last one is what the page is about; what comes before is what it is compared with.
  const std::string& last = parsed.positionals.back();
  for (std::size_t i = 0; i + 1 < parsed.positionals.size(); ++i)
    for (auto& run : verdict::read_run_list(parsed.positionals[i], verdict::IndexUse::read))
      extras.compared.push_back(std::move(run));
  std::string page;
  if (is_collection(last)) {
    page = page_of_directory(last, values, references, std::move(extras));
  } else {
    const results::Results results = results::load(last);
    std::vector<verdict::Snapshot> all = extras.compared;
    all.emplace_back().source = {name_of(last), results.info.run_id, results.info.started, ""};
    check_given_once("report", all, parsed.positionals);
    page = page_of(last, results, verdict_options(results, values, references), std::move(extras));
  }
  write_file("--output", output, [&](std::ostream& out) { out << page; });
  return ExitCode::pass;
}

ExitCode trend_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  if (!values.has("output")) throw_usage("trend: -o FILE is missing (usage: " + parsed.command->usage + ")");
  const std::string& input = parsed.positionals.front();
  check_outputs({{"--output", values.text("output")}}, {input});
  const auto runs = verdict::read_run_list(input, verdict::IndexUse::read);
  check_given_once("trend", runs, {input});
  if (runs.size() < 2)
    throw_usage(fmt::format("trend: {} holds {} run{}: at least two runs are needed", input, runs.size(),
                            runs.size() == 1 ? "" : "s"));
  const std::string page = report::trend_html(runs, name_of(input));
  write_file("--output", values.text("output"), [&](std::ostream& out) { out << page; });
  if (const std::string few = report::few_runs_words(runs); !few.empty()) print(few + "\n");
  return ExitCode::pass;
}

}  // namespace assay::cli
