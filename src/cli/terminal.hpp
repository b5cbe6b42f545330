// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/report.hpp"

namespace assay::cli {

/// Whether a person's terminal is behind standard output. Under a launcher the descriptor of this process is
/// a pseudo-terminal of the launcher whatever the launcher's own output is, so the parent's is looked at.
bool output_is_terminal();

/// How to print on standard output: `color` is auto, always or never; NO_COLOR is respected by auto. The
/// width is 80 unless COLUMNS or the terminal says otherwise.
report::Style output_style(const std::string& color);

}  // namespace assay::cli
