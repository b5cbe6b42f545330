// SPDX-License-Identifier: Apache-2.0
#include "run/agree.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace assay {

void agree_error(Communicator& world, const std::optional<Error>& mine) {
  const auto all =
      world.all_gather_text(mine ? fmt::format("{};{}", static_cast<int>(mine->kind()), mine->what()) : "");
  for (const std::string& told : all) {
    if (told.empty()) continue;
    const auto split = told.find(';');
    throw Error(static_cast<ErrorKind>(std::stoi(told.substr(0, split))), told.substr(split + 1));
  }
}

ExitCode report_error(Communicator& world, const Error& e) {
  if (world.rank() == 0) std::fprintf(stderr, "assay: %s\n", e.what());
  world.barrier();
  return e.exit_code();
}

}  // namespace assay
