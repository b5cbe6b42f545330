// SPDX-License-Identifier: Apache-2.0
#include "transport/agree.hpp"

#include <fmt/format.h>

namespace assay {

void agree_error(Communicator& group, const std::optional<Error>& mine) {
  const auto all =
      group.all_gather_text(mine ? fmt::format("{};{}", static_cast<int>(mine->kind()), mine->what()) : "");
  for (const std::string& told : all) {
    if (told.empty()) continue;
    const auto split = told.find(';');
    throw Error(static_cast<ErrorKind>(std::stoi(told.substr(0, split))), told.substr(split + 1));
  }
}

void agree_problem(Communicator& group, const std::string& problem) {
  agree_error(group, problem.empty() ? std::nullopt : std::optional(Error(ErrorKind::mpi, problem)));
}

}  // namespace assay
