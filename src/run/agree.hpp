// SPDX-License-Identifier: Apache-2.0
// An error that one rank meets alone is told to all of them before any of them goes on: otherwise the others would wait for it in a
// collective operation that it never enters.
#pragma once

#include <exception>
#include <string>

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// Collective: throws on every rank when any rank gives a message. The lowest failing rank's words win.
void agree_error(Communicator& world, const std::string& message, ErrorKind kind);

/// Runs `step`, which must not communicate, and agrees on its outcome.
template <typename Step>
void together(Communicator& world, const Step& step) {
  std::string message;
  ErrorKind kind = ErrorKind::internal;
  try {
    step();
  } catch (const Error& e) {
    message = e.what();
    kind = e.kind();
  } catch (const std::exception& e) {
    message = e.what();
  }
  agree_error(world, message, kind);
}

}  // namespace assay
