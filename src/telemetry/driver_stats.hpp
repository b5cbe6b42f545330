// SPDX-License-Identifier: Apache-2.0
// The counters that network drivers keep beyond those of the kernel: what `ethtool -S` prints.
#pragma once

#include <map>
#include <string>

namespace assay {

/// By name. `place` is an interface of the running system, asked by ioctl, or the path of a file that holds
/// what `ethtool -S` printed. Empty where there are none.
std::map<std::string, double> driver_stats(const std::string& place);

/// Meaning of an increase. Names differ between drivers, so it is derived from common words.
enum class DriverStat {
  other,
  error,  ///< the wire or the adapter damaged something: CRC and symbol errors, uncorrectable FEC errors, a
          ///< link that went down
  flow,   ///< overload: pause frames, congestion marks, discards, no buffer
};
DriverStat kind_of_driver_stat(const std::string& name);

}  // namespace assay
