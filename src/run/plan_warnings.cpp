// SPDX-License-Identifier: Apache-2.0
#include "run/plan_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/glob.hpp"
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

std::vector<std::string> unmatched_names(const Config& config, const Plan& plan,
                                         const std::vector<std::unique_ptr<Suite>>& suites) {
  std::vector<std::string> lines;
  if (!config.limits_text.empty())
    for (const auto& limit : verdict::parse_limits(config.limits_text, config.limits_file))
      if (!names_case(plan, limit.case_glob))
        lines.push_back(fmt::format("{}:{}: {} matches no case of this plan: the run will be INCONCLUSIVE",
                                    config.limits_file, limit.line, limit.full()));
  for (const std::string& name : config.require)
    if (name != verdict::coverage_name && !names_case(plan, name.substr(0, name.find(':'))) &&
        !names_suite_or_metric(suites, name))
      lines.push_back(fmt::format(
          "--require: no case of this plan, suite or metric is called '{}': if no counter is either, "
          "the run will be INCONCLUSIVE",
          name));
  return lines;
}

}  // namespace

void warn_of_plan(const Config& config, const Plan& plan, const std::vector<std::unique_ptr<Suite>>& suites) {
  if (const std::string line = plan.over_budget(); !line.empty())
    std::fprintf(stderr, "assay: %s\n", line.c_str());
  for (const std::string& line : unmatched_names(config, plan, suites))
    std::fprintf(stderr, "assay: %s\n", line.c_str());
}

}  // namespace assay
