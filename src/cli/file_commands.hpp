// SPDX-License-Identifier: Apache-2.0
// The commands that work on results files: no MPI, no device.
#pragma once

#include "base/exit_code.hpp"
#include "cli/command.hpp"
#include "cli/output.hpp"
#include "report/report.hpp"
#include "verdict/join.hpp"
#include "verdict/references.hpp"
#include "verdict/snapshot.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {

/// --color and --no-color of commands that print for people.
report::Style style_of(const OptionValues& values);
/// The outputs that a command was asked for: machine outputs, the page, proposed limits.
std::vector<Output> outputs_of(const OptionValues& values);
/// The files that the verdict is judged by.
std::vector<std::string> references_of(const OptionValues& values);
/// Throws Error(usage) where a run is among them twice: it would count as another one, which agrees with it.
/// A directory may hold copies.
void check_given_once(const std::string& command, const std::vector<verdict::Snapshot>& runs,
                      const std::vector<std::string>& inputs);
/// Attempts to write the machine outputs and, of what `page` returns, --report.
void write_outputs(const OptionValues& values, const results::Results& results,
                   const results::VerdictData& verdict, const std::function<std::string()>& page,
                   Attempts& attempt);

/// Options of the verdict as the run had them, with what --limits, --baseline, --history, --require and
/// --strict say instead.
verdict::Options verdict_options(const results::Results& results, const OptionValues& values,
                                 const verdict::References& references);
/// Runs of a directory judged one by one and together.
struct JudgedDirectory {
  verdict::Join join;
  bool strict = false;
};
/// All results files of a directory in the order of their names, those that were left unfinished too. Of
/// several that hold one run, such as copies, the one with the most ended cases counts.
JudgedDirectory judge_directory(const std::string& directory, const OptionValues& values,
                                const verdict::References& references);
/// A directory of results files, unlike the partial directory of one run.
bool is_collection(const std::string& path);

ExitCode inspect_command(const Parsed& parsed);
ExitCode verdict_command(const Parsed& parsed);
ExitCode export_command(const Parsed& parsed);
ExitCode schema_command(const Parsed& parsed);
ExitCode recover_command(const Parsed& parsed);

}  // namespace assay::cli
