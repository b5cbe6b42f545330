// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/exit_code.hpp"
#include "cli/command.hpp"

namespace assay::cli {

/// An error that ranks of other hosts need not meet, such as a file that is missing on this one.
class HostError : public Error {
 public:
  using Error::Error;
};

/// `assay run` and `assay plan`: configuration from command line and file, then the session.
ExitCode run_command(int argc, char** argv, const Parsed& parsed, Suites suites);

/// What was typed, as the ranks get it from a process that starts them: one word --NAME=TEXT each, without
/// what that process says by itself, of `run` for each launch (--out, --exclude, --resume, --force, ...).
std::vector<std::string> relaunch_arguments(const Parsed& parsed);

/// The validated configuration of a parsed `run` or `plan`; reads --config and --limits.
Config resolve_config(const Parsed& parsed, const Suites& suites, const std::string& command_line);

}  // namespace assay::cli
