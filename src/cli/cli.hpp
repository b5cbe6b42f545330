// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace assay {

/// The whole program: parses the command line, runs the command, turns every error into one line on standard
/// error and its exit code. Never throws.
int cli_main(int argc, char** argv) noexcept;

}  // namespace assay
