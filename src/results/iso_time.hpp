// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::results {

/// Seconds since 1970 of "2026-01-31T04:05:06Z", the form of all times in a results file; nothing for any
/// other text.
std::optional<std::int64_t> unix_seconds(const std::string& iso);

}  // namespace assay::results
