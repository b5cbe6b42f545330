// SPDX-License-Identifier: Apache-2.0
#include "run/plan_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "telemetry/counters.hpp"
#include "verdict/limits.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

bool names_case(const Plan& plan, const std::string& glob) {
  return std::ranges::any_of(plan.cases, [&](const Case& c) {
    return c.not_applicable.empty() && glob_match(glob, c.suite + "/" + c.name);
  });
}

bool names_suite_or_metric(const std::vector<std::unique_ptr<Suite>>& suites, const std::string& glob) {
  return std::ranges::any_of(suites, [&](const auto& suite) {
    return glob_match(glob, std::string(suite->name())) ||
           std::ranges::any_of(suite->metrics(), [&](const auto& m) { return glob_match(glob, m.name); });
  });
}

bool names_more_than_cases(const std::string& name, const std::vector<std::unique_ptr<Suite>>& suites) {
  return name == verdict::coverage_name || names_suite_or_metric(suites, name) || names_counter(name);
}

std::vector<std::string> unmatched_names(const Config& config, const Plan& plan,
                                         const std::vector<std::unique_ptr<Suite>>& suites) {
  std::vector<std::string> lines;
  if (!config.limits_text.empty())
    for (const auto& limit : verdict::parse_limits(config.limits_text, config.limits_file))
      if (!names_case(plan, limit.case_glob))
        lines.push_back(fmt::format("{}:{}: {} matches no case of this plan: the run will be INCONCLUSIVE",
                                    config.limits_file, limit.line, limit.full()));
  for (const std::string& name : config.require)
    if (!names_case(plan, name.substr(0, name.find(':'))) && !names_more_than_cases(name, suites))
      lines.push_back(
          fmt::format("--require: no case of this plan is called '{}': the run will be INCONCLUSIVE", name));
  return lines;
}

}  // namespace

void check_required(const std::vector<std::string>& required,
                    const std::vector<std::unique_ptr<Suite>>& suites) {
  for (const std::string& name : required) {
    const auto slash = name.find('/');
    const bool known = slash == std::string::npos ? names_more_than_cases(name, suites)
                                                  : names_suite_or_metric(suites, name.substr(0, slash));
    if (!known) throw_usage(fmt::format("--require: no suite, case, metric or counter is called '{}'", name));
  }
}

void warn_of_plan(const Config& config, const Plan& plan, const std::vector<std::unique_ptr<Suite>>& suites) {
  if (const std::string line = plan.over_budget(); !line.empty())
    std::fprintf(stderr, "assay: %s\n", line.c_str());
  for (const std::string& line : unmatched_names(config, plan, suites))
    std::fprintf(stderr, "assay: %s\n", line.c_str());
}

}  // namespace assay
