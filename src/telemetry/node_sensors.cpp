// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "telemetry/telemetry.hpp"
#include "topology/sysfs.hpp"

namespace assay {

NodeSensors::NodeSensors(const std::string& root) : packages_(root) {
  // Asking a CPU for its clock interrupts it: one of each package is read for all.
  const std::string cpus = root + "/sys/devices/system/cpu";
  std::set<std::string> packages;
  for (const std::string& cpu : sysfs::numbered(cpus, "cpu")) {
    const std::string file = cpus + "/" + cpu + "/cpufreq/scaling_cur_freq";
    if (std::isnan(sysfs::number(file))) continue;
    if (packages.insert(sysfs::line(cpus + "/" + cpu + "/topology/physical_package_id")).second)
      clocks_.push_back(file);
  }
  constexpr std::size_t most = 8;
  const std::string monitors = root + "/sys/class/hwmon";
  for (const std::string& monitor : sysfs::numbered(monitors, "hwmon")) {
    const std::string name = sysfs::line(monitors + "/" + monitor + "/name");
    // The first sensor of these is that of the package, or the control value that stands for it.
    const std::string file = monitors + "/" + monitor + "/temp1_input";
    if ((name == "coretemp" || name == "k10temp") && temperatures_.size() < most &&
        !std::isnan(sysfs::number(file)))
      temperatures_.push_back(file);
  }
}

std::map<std::string, double> NodeSensors::read(double t) {
  std::map<std::string, double> values;
  double sum = 0;
  for (const std::string& file : clocks_) sum += sysfs::number(file) * 1e3;
  if (!clocks_.empty()) values["cpu_clock"] = sum / static_cast<double>(clocks_.size());
  double hottest = unsupported;
  for (const std::string& file : temperatures_)
    hottest = std::fmax(hottest, sysfs::number(file) * 1e-3 + 273.15);
  if (!temperatures_.empty()) values["temperature"] = hottest;
  if (packages_.tells()) {
    const double joules = packages_.read();
    values["power"] = (joules - last_j_) / (t - last_t_);
    if (!std::isnan(joules)) {
      last_j_ = joules;
      last_t_ = t;
    }
  }
  return values;
}

}  // namespace assay
