// SPDX-License-Identifier: Apache-2.0
// An error on one rank is sent to all ranks before any of them continues. Otherwise they would wait for it in
// a collective operation that it never enters.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// Collective: throws on every rank when any rank has an error. Kind and message are those of the lowest such
/// rank.
void agree_error(Communicator& group, const std::optional<Error>& mine);

/// The same for what a transport cannot do: an error of kind `mpi`, unless `problem` is empty.
void agree_problem(Communicator& group, const std::string& problem);

/// What `step` throws; nothing when it ends well.
template <typename Step>
std::optional<Error> error_of(const Step& step) {
  try {
    step();
  } catch (const Error& e) {
    return e;
  } catch (const std::exception& e) {
    return Error(ErrorKind::internal, e.what());
  }
  return {};
}

/// The words of what `step` throws after "rank R: "; empty when it ends well.
template <typename Step>
std::string problem_of(int rank, const Step& step) {
  const auto error = error_of(step);
  return error ? "rank " + std::to_string(rank) + ": " + error->what() : "";
}

/// Runs `step`, which must not communicate, and agrees on its outcome.
template <typename Step>
void together(Communicator& world, const Step& step) {
  agree_error(world, error_of(step));
}

}  // namespace assay
