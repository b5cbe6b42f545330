// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace assay::cli {

/// Text to standard output. A reader that went away (`| head`) is no error; a full disk behind it is:
/// Error(io).
void print(const std::string& text);

/// The same for what is too long to build first.
void print_with(const std::function<void(std::ostream&)>& write);

/// One line on standard error: "assay: " and the message, without line breaks or control characters.
void print_error(const std::string& message);

/// The command line as typed, quoted where a shell would need it, so that it can be pasted again.
std::string quoted_command_line(int argc, char** argv);

/// Writes a file whole or not at all: a temporary name beside it, then rename. What stood there is replaced,
/// of a symbolic link its target; devices and pipes are written to directly. Throws Error(io) "OPTION: cannot
/// write FILE: why".
void write_file(const std::string& option, const std::string& file,
                const std::function<void(std::ostream&)>& write);

/// Throws Error(usage) "OPTION: ..." when `file` could not be written now: a directory, or in one that is
/// missing or closed.
void check_writable(const std::string& option, const std::string& file);

struct Output {
  std::string option, file;
};

/// Throws Error(usage) when an output could not be written now, would replace a file that is read or is given
/// twice. `inputs`: files, directories with results files, lists of them separated by commas; empty ones
/// count for nothing.
void check_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs);
/// Only that no file is given twice.
void check_distinct(const std::vector<Output>& outputs);

/// Tries steps of which none depends on another; a result is told although one of its files cannot be
/// written.
class Attempts {
 public:
  void operator()(const std::function<void()>& step);
  /// Throws the first error, if there was one.
  void finish() const;
  /// The worse of `code` and that of the first error.
  int worse(int code) const;
  /// The same, and prints the error.
  ExitCode code(int code) const;

 private:
  std::optional<Error> first_;
};

/// Throws Error(usage) when `file` cannot become a results file: it exists (without `force`), or as above.
/// For commands that work long before they write.
void check_results_output(const std::string& option, const std::string& file, bool force);

}  // namespace assay::cli
