// SPDX-License-Identifier: Apache-2.0
#include "telemetry/power_meter.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "telemetry/periodic_sampler.hpp"
#include "topology/sysfs.hpp"

namespace assay {

PackageEnergy::PackageEnergy(const std::string& root) {
  const std::string zones = root + "/sys/class/powercap";
  std::map<std::string, std::string> folders;
  // intel-rapl-mmio:0 is the same package as intel-rapl:0, which comes behind it.
  for (const std::string& zone : sysfs::entries(zones)) {
    const std::string folder = zones + "/" + zone, name = sysfs::line(folder + "/name");
    if (name.starts_with("package") && !std::isnan(sysfs::number(folder + "/energy_uj")))
      folders[name] = folder;
  }
  for (const auto& [name, folder] : folders)
    zones_.push_back(
        {folder + "/energy_uj", sysfs::number(folder + "/max_energy_range_uj") * 1e-6, unsupported});
}

double PackageEnergy::read() {
  if (zones_.empty()) return unsupported;
  bool all = true;
  for (Zone& zone : zones_) {
    const double now = sysfs::number(zone.file) * 1e-6;
    if (std::isnan(now)) {
      all = false;
      continue;
    }
    if (!std::isnan(zone.last_j)) used_j_ += now - zone.last_j + (now < zone.last_j ? zone.range_j : 0);
    zone.last_j = now;
  }
  return all ? used_j_ : unsupported;
}

struct PowerMeter::Impl {
  static constexpr std::size_t most_readings = 200'000;

  std::shared_ptr<NvmlThread> nvml;
  double period_s;
  PackageEnergy packages;
  std::vector<EnergyReading> readings;
  std::optional<PeriodicSampler> sampler;  ///< after all that its thread uses

  Impl(std::shared_ptr<NvmlThread> library, double period, const std::string& root)
      : nvml(std::move(library)), period_s(period), packages(root) {
    if (nvml != nullptr || packages.tells()) sampler.emplace([this] { return sample(); });
  }

  EnergyReading read() {
    constexpr double patience_s = 1;
    EnergyReading reading;
    if (nvml != nullptr) {
      auto joules = std::make_shared<std::vector<double>>();
      const auto fill = [joules](Nvml& library) {
        std::vector<double> all;
        for (int gpu = 0; gpu < library.count(); ++gpu) all.push_back(library.energy_j(gpu).value);
        *joules = std::move(all);
      };
      if (nvml->call(fill, patience_s)) reading.gpus_j = *joules;
    }
    reading.packages_j = packages.read();
    reading.t = now_s();
    return reading;
  }

  void thin_out() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < readings.size(); i += 2) readings[kept++] = std::move(readings[i]);
    readings.resize(kept);
    period_s *= 2;
  }

  double sample() {
    readings.push_back(read());
    if (readings.size() >= most_readings) thin_out();
    return period_s;
  }
};

PowerMeter::PowerMeter(std::shared_ptr<NvmlThread> nvml, double period_s, const std::string& root)
    : impl_(std::make_unique<Impl>(std::move(nvml), period_s, root)) {}

PowerMeter::~PowerMeter() = default;

std::vector<EnergyReading> PowerMeter::finish() {
  impl_->sampler.reset();  // it waits for no sensor longer than a second
  return std::exchange(impl_->readings, {});
}

}  // namespace assay
