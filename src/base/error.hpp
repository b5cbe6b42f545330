// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "base/exit_code.hpp"

namespace assay {

/// What went wrong, which decides who turns it into what: `usage` ends the program with exit 4, `io` during a
/// run ends it with 3 and keeps what is on disk, the others make the running case `error`.
enum class ErrorKind { usage, io, hdf5, mpi, blas, device, resource, data, internal };

/// The one exception type of assay. `what()` is one line, made for a person, and names the cause.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

  /// The exit code when nothing better is known about where the error happened.
  ExitCode exit_code() const noexcept {
    switch (kind_) {
      case ErrorKind::usage:
      case ErrorKind::data: return ExitCode::usage;
      case ErrorKind::internal: return ExitCode::internal;
      default: return ExitCode::inconclusive;
    }
  }

 private:
  ErrorKind kind_;
};

[[noreturn]] inline void throw_usage(const std::string& message) { throw Error(ErrorKind::usage, message); }

}  // namespace assay
