// SPDX-License-Identifier: Apache-2.0
#include "run/plan_launched.hpp"

#include <string>
#include <utility>
#include <vector>

#include "run/launcher.hpp"
#include "run/launcher_process.hpp"

namespace assay {

ExitCode plan_launched(const Relaunch& how) {
  launch_with_system_libraries();
  std::vector<std::string> words = how.launcher.empty() ? how.local : launcher_words(how.launcher, {});
  words.push_back(program_of_ranks());
  words.emplace_back("plan");
  words.insert(words.end(), how.arguments.begin(), how.arguments.end());
  words.insert(words.end(), {"--launcher", "none"});
  Signals signals;
  const Ended ended = execute(std::move(words), signals, [](const auto&) { return std::string(); });
  how.print(ended.out);
  const auto code = static_cast<ExitCode>(ended.code);
  const bool ours = code == ExitCode::pass || (code >= ExitCode::inconclusive && code <= ExitCode::internal);
  return ours ? code : ExitCode::inconclusive;
}

}  // namespace assay
