// SPDX-License-Identifier: Apache-2.0
// Private to the NCCL transport: errors of one rank as errors of all.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay::cuda {

/// What one rank could not do is an error of all, in its words.
inline void agree(Communicator& group, const std::string& problem) {
  for (const std::string& text : group.all_gather_text(problem))
    if (!text.empty()) throw Error(ErrorKind::mpi, text);
}

/// Runs `step`; what went wrong becomes text.
template <typename Step>
std::string problem_of(int rank, Step&& step) {
  try {
    step();
  } catch (const Error& e) {
    return fmt::format("rank {}: {}", rank, e.what());
  }
  return {};
}

}  // namespace assay::cuda
