// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_command.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/error.hpp"
#include "cli/file_commands.hpp"
#include "cli/output.hpp"
#include "report/compare.hpp"
#include "verdict/history_index.hpp"

namespace assay::cli {
namespace {

/// "1%", "1 %" or "1" as a fraction of the rate.
double margin_of(std::string text) {
  const std::string typed = text;
  if (text.ends_with('%')) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{} || end != text.data() + text.size() || !(percent > 0 && percent < 50))
    throw_usage(fmt::format("--margin: '{}' is no percentage above 0 and below 50, e.g. 1%", typed));
  return percent / 100;
}

}  // namespace

ExitCode compare_command(const Parsed& parsed) {
  const OptionValues values = option_values(parsed);
  const report::Style style = style_of(values);
  verdict::CompareOptions options;
  options.margin = margin_of(values.text("margin"));
  options.cases = values.text("cases");
  options.device_unit = values.text("unit") == "device";
  options.ignore_case_key = values.flag("ignore-case-key");
  check_outputs(outputs_of(values), parsed.positionals);
  const auto a = verdict::read_run_list(parsed.positionals[0], verdict::IndexUse::read);
  const auto b = verdict::read_run_list(parsed.positionals[1], verdict::IndexUse::read);
  check_given_once("compare", a, {parsed.positionals[0]});
  check_given_once("compare", b, {parsed.positionals[1]});
  verdict::CompareResult result = verdict::compare(a, b, options);
  result.given_a = parsed.positionals[0];
  result.given_b = parsed.positionals[1];
  Attempts attempt;
  attempt([&] {
    if (values.has("json"))
      write_file("--json", values.text("json"),
                 [&](std::ostream& out) { out << report::compare_json(result, options); });
  });
  attempt([&] {
    // The last line tells the code that this process ends with.
    verdict::CompareResult told = result;
    told.exit_code = attempt.worse(result.exit_code);
    print(report::compare_text(told, options, style));
  });
  return attempt.code(result.exit_code);
}

}  // namespace assay::cli
