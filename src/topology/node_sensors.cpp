// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "topology/sysfs.hpp"
#include "topology/telemetry.hpp"

namespace assay {

NodeSensors::NodeSensors(const std::string& root) {
  // Asking a CPU for its clock interrupts it: one of each package speaks for all.
  const std::string cpus = root + "/sys/devices/system/cpu";
  std::set<std::string> packages;
  for (const std::string& cpu : sysfs::numbered(cpus, "cpu")) {
    const std::string file = cpus + "/" + cpu + "/cpufreq/scaling_cur_freq";
    if (std::isnan(sysfs::number(file))) continue;
    if (packages.insert(sysfs::line(cpus + "/" + cpu + "/topology/physical_package_id")).second) clocks_.push_back(file);
  }
  constexpr std::size_t most = 8;
  const std::string monitors = root + "/sys/class/hwmon";
  for (const std::string& monitor : sysfs::numbered(monitors, "hwmon")) {
    const std::string name = sysfs::line(monitors + "/" + monitor + "/name");
    // The first sensor of these is that of the package, or the control value that stands for it.
    const std::string file = monitors + "/" + monitor + "/temp1_input";
    if ((name == "coretemp" || name == "k10temp") && temperatures_.size() < most && !std::isnan(sysfs::number(file))) temperatures_.push_back(file);
  }
  const std::string zones = root + "/sys/class/powercap";
  for (const std::string& zone : sysfs::entries(zones)) {
    const std::string folder = zones + "/" + zone;
    if (!sysfs::line(folder + "/name").starts_with("package") || std::isnan(sysfs::number(folder + "/energy_uj"))) continue;
    energies_.push_back({folder + "/energy_uj", sysfs::number(folder + "/max_energy_range_uj") * 1e-6, unsupported});
  }
}

std::map<std::string, double> NodeSensors::read(double t) {
  std::map<std::string, double> values;
  double sum = 0;
  for (const std::string& file : clocks_) sum += sysfs::number(file) * 1e3;
  if (!clocks_.empty()) values["cpu_clock"] = sum / static_cast<double>(clocks_.size());
  double hottest = unsupported;
  for (const std::string& file : temperatures_) hottest = std::fmax(hottest, sysfs::number(file) * 1e-3 + 273.15);
  if (!temperatures_.empty()) values["temperature"] = hottest;
  double power = 0;
  for (Energy& energy : energies_) {
    const double now = sysfs::number(energy.file) * 1e-6;
    const double used = now - energy.last_j + (now < energy.last_j ? energy.range_j : 0);
    power += used / (t - last_t_);
    energy.last_j = now;
  }
  last_t_ = t;
  if (!energies_.empty()) values["power"] = power;
  return values;
}

}  // namespace assay
