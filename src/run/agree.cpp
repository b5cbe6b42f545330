// SPDX-License-Identifier: Apache-2.0
#include "run/agree.hpp"

#include <fmt/format.h>

namespace assay {

void agree_error(Communicator& world, const std::string& message, ErrorKind kind) {
  const auto all = world.all_gather_text(message.empty() ? "" : fmt::format("{};{}", static_cast<int>(kind), message));
  for (const std::string& told : all) {
    if (told.empty()) continue;
    const auto split = told.find(';');
    throw Error(static_cast<ErrorKind>(std::stoi(told.substr(0, split))), told.substr(split + 1));
  }
}

}  // namespace assay
