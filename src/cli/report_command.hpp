// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/exit_code.hpp"
#include "cli/command.hpp"
#include "results/model.hpp"
#include "verdict/references.hpp"
#include "verdict/verdict.hpp"

namespace assay::cli {

/// --report of `run` and `verdict`: the page of one results file; `file` is what its SHA-256 is taken of.
std::string report_page(const std::string& file, const results::Results& results,
                        const verdict::Options& options);
/// The same of a directory with results files.
std::string report_directory(const std::string& directory, const OptionValues& values,
                             const verdict::References& references);

ExitCode report_command(const Parsed& parsed);
ExitCode trend_command(const Parsed& parsed);

}  // namespace assay::cli
