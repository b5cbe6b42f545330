// SPDX-License-Identifier: Apache-2.0
// The sections of the page in their order; each returns the content below its heading.
#pragma once

#include <string>

#include "report/html/page.hpp"

namespace assay::report {

std::string cover_section(const Page& page);
std::string contract_section(const Page& page);
std::string untested_section(const Page& page);
std::string fleet_section(const Page& page);
std::string findings_section(const Page& page);
std::string matrices_section(const Page& page);
std::string sweeps_section(const Page& page);
std::string distributions_section(const Page& page);
std::string telemetry_section(const Page& page);
std::string training_section(const Page& page);
std::string history_section(const Page& page);
std::string history_of(const std::vector<verdict::Snapshot>& runs);
std::string comparison_section(const Page& page);
/// The verdict over all runs of a directory; empty for one run.
std::string joint_block(const Page& page);
std::string inventory_section(const Page& page);

SweepLines sweep_lines_of(const Page& page, const Sweep& sweep);

/// Values at equally spaced ranks, so that quantiles stay what they are; all of them where there are no more
/// than `most`.
std::vector<double> thinned(std::vector<double> values, std::size_t most);

}  // namespace assay::report
