// SPDX-License-Identifier: Apache-2.0
// What an increase of a counter means, from the names that the counter probe gives.
#pragma once

#include <string>

namespace assay::results {

enum class CounterClass { uncorrectable, correctable, throttle, traffic };

CounterClass counter_class(const std::string& counter);

/// Whether its rise means throttling.
bool is_throttling(const std::string& counter);
/// Times throttled by heat: in hardware, and for all thermal reasons.
inline constexpr const char *hardware_thermal = "nvml_violation_hw_thermal_ns",
                            *all_thermal = "nvml_violation_thermal_ns";

}  // namespace assay::results
