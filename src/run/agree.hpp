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

/// Collective: throws on every rank when any rank has an error. The message is that of the lowest such rank.
void agree_error(Communicator& world, const std::optional<Error>& mine);

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

/// Runs `step`, which must not communicate, and agrees on its outcome.
template <typename Step>
void together(Communicator& world, const Step& step) {
  agree_error(world, error_of(step));
}

/// Collective: one clear line from rank 0, the same exit code everywhere.
ExitCode report_error(Communicator& world, const Error& e);

}  // namespace assay
