// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.hpp"

#include <filesystem>
#include <string>

#include "cli/file_commands.hpp"
#include "cli/output.hpp"
#include "cli/report_command.hpp"
#include "cli/terminal.hpp"
#include "report/report.hpp"
#include "results/reader.hpp"
#include "run/run_file.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {

int RunReports::tell(const RunReport& run) {
  Attempts attempt;
  const bool chain = config_.segments() > 1;
  const verdict::Options options = verdict::options_from(run.results);
  if (chain) segments_.add(std::filesystem::path(run.file).filename().string(), run.results, run.verdict);
  results::VerdictData told = run.verdict, all = chain ? segments_.verdict(options.strict) : run.verdict;
  const auto page = [&] { return report_page(run.file, run.results, options); };
  write_outputs(config_.options, chain ? segments_.results() : run.results, all, page, attempt);
  const int of_all = worse_code(code_, chain && run.last ? all.exit_code : told.exit_code);
  attempt([&] {
    const report::Style style = output_style(config_.color);
    told.exit_code = attempt.worse(told.exit_code);
    std::string text = config_.quiet ? report::verdict_text(told, style)
                                     : report::summary(run.results, told, run.file, style);
    if (chain && run.last) {
      all.exit_code = attempt.worse(of_all);
      text += (config_.quiet ? "" : "\n") + report::verdict_text(all, style);
    }
    print(text);
    // A process that launched this one tells it for all launches.
    if (!config_.quiet && run.ran_s > 0 && config_.options.number("spent") == 0)
      print(report::time_line(run.ran_s, run.budget_s));
  });
  code_ = attempt.worse(of_all);
  attempt.finish();
  return code_;
}

ExitCode code_with_drift(const Config& config, ExitCode of_files) {
  if (!config.strict || config.segments() == 1 || of_files != ExitCode::pass) return of_files;
  verdict::Join segments;
  for (int segment = 1; segment <= config.segments(); ++segment) {
    const std::filesystem::path file = file_of_segment(config, segment);
    const auto results = results::load(file);
    segments.add(
        file.filename().string(), results,
        results.verdict ? *results.verdict : verdict::judge(results, verdict::options_from(results)));
  }
  return static_cast<ExitCode>(segments.verdict(true).exit_code);
}

}  // namespace assay::cli
