// SPDX-License-Identifier: Apache-2.0
#include "results/counter_class.hpp"

namespace assay::results {

/// Bytes, packets and drops are traffic: the kernel drops frames it has no use for, so a drop alone tells
/// nothing about the hardware.
CounterClass counter_class(const std::string& counter) {
  const auto contains = [&](const char* part) { return counter.find(part) != std::string::npos; };
  // Drivers have words of their own: the probe has sorted them.
  if (counter.starts_with("driver_"))
    return counter.starts_with("driver_errors:") ? CounterClass::correctable : CounterClass::traffic;
  if (is_throttling(counter)) return CounterClass::throttle;
  // What is left of the times are limits of power and sync: they rise on any loaded GPU.
  if (counter == "nvml_energy_j" || counter.starts_with("nvml_violation_")) return CounterClass::traffic;
  if (contains("bytes") || contains("packets") || contains("drop") || contains("port_xmit_wait") ||
      counter.ends_with("_data")) {
    return CounterClass::traffic;
  }
  // MCE exceptions and deferred errors are machine checks that hardware could not correct; the threshold
  // interrupt counts corrected ones.
  if (counter == "mce" || counter == "mce_deferred" || contains("edac_ue") || contains("ue_count") ||
      contains("ue_noinfo") || (contains("fatal") && !contains("nonfatal")) || contains("uncorrect")) {
    return CounterClass::uncorrectable;
  }
  return CounterClass::correctable;
}

bool is_throttling(const std::string& counter) {
  return counter.find("throttle") != std::string::npos || counter == hardware_thermal ||
         counter == "nvml_violation_hw_brake_ns" || counter == all_thermal;
}

}  // namespace assay::results
