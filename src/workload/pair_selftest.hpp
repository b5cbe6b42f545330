// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "suite/suite.hpp"

namespace assay::workload {

inline constexpr const char* selftest_operation = "selftest";
/// What the self-test reports.
results::MetricSpec selftest_metric();

/// The case that runs it, first in a suite whose messages are checked.
Case pair_selftest_case(const std::string& suite, Stage stage, const Topology& topology);

/// Every rank sends a message to the next one (to itself when alone), the receiver corrupts one byte of it on
/// purpose, and the check must find it, at its place, once.
void run_pair_selftest(const Case& c, Context& context);

}  // namespace assay::workload
