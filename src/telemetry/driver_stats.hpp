// SPDX-License-Identifier: Apache-2.0
// The counters that network drivers keep beyond those of the kernel: what `ethtool -S` prints.
#pragma once

#include <map>
#include <string>

namespace assay {

/// By name. `place` is an interface of the running system, asked by ioctl, or the path of a file that holds
/// what `ethtool -S` printed. Empty where there are none.
std::map<std::string, double> driver_stats(const std::string& place);

/// What an increase tells. Names differ between drivers, so it goes by words that they share.
enum class DriverStat {
  other,
  error,  ///< the wire or the adapter damaged something: CRC and symbol errors, what FEC could not mend, a
          ///< link that went down
  flow,   ///< there was more than somebody could take: pause frames, congestion marks, discards, no buffer
};
DriverStat kind_of_driver_stat(const std::string& name);

}  // namespace assay
