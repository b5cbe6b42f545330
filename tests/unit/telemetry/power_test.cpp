// SPDX-License-Identifier: Apache-2.0
// Power from counters that move in steps, and the meters that read them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "measure/power.hpp"
#include "telemetry/power_meter.hpp"

namespace assay {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A device that draws `high` W in the first `duty` of every `period`, `low` else; its counter moves every
/// `step` seconds and is read every `read` seconds.
EnergyTrace counter(double high, double low, double period, double duty, double step, double read,
                    double seconds) {
  const auto joules = [&](double t) {
    const double whole = std::floor(t / period), within = t - whole * period;
    return whole * period * (duty * high + (1 - duty) * low) + std::min(within, duty * period) * high +
           std::max(0.0, within - duty * period) * low;
  };
  EnergyTrace trace;
  for (double t = 0; t < seconds; t += read) {
    trace.t.push_back(t);
    trace.joules.push_back(1000 + joules(std::floor(t / step) * step));
  }
  return trace;
}

std::vector<PulseTimes> pulses(double period, double duty, int first, int count) {
  std::vector<PulseTimes> all;
  for (int k = first; k < first + count; ++k)
    all.push_back({k * period, (k + duty) * period, (k + 1) * period});
  return all;
}

TEST(Power, OnlyMovesCountAndGapsAreLeftOut) {
  const EnergyTrace moves = moves_of({{0, 1, 2, 3, 4, 5}, {10, 10, nan, 12, 12, 15}});
  EXPECT_EQ(moves.t, (std::vector<double>{0, 3, 5}));
  EXPECT_EQ(moves.joules, (std::vector<double>{10, 12, 15}));
  EXPECT_TRUE(std::isnan(resolution_s(moves)));
  EXPECT_TRUE(std::isnan(mean_power_w({}, 0, 1)));
}

TEST(Power, TheMeanOfASteadyDevice) {
  const EnergyTrace moves = moves_of(counter(300, 300, 1, 0.5, 0.1, 0.01, 10));
  EXPECT_NEAR(resolution_s(moves), 0.1, 0.011);
  EXPECT_NEAR(mean_power_w(moves, 2, 8), 300, 3);
  EXPECT_TRUE(std::isnan(mean_power_w(moves, 2, 2.3))) << "fewer than four moves tell too little";
  EXPECT_TRUE(std::isnan(mean_power_w(moves, 2, 12))) << "nobody looked for so long";
}

TEST(Power, TheSwingIsThatOfTheDeviceAndNotOfTheCounter) {
  for (const double period : {1.0, 2.0, 10.0}) {
    const EnergyTrace moves =
        moves_of(counter(650, 90, period, 0.5, 0.09, 0.005, 12 * period));  // moves across the edges
    const PowerSwing swing = power_swing(moves, pulses(period, 0.5, 2, 8));
    EXPECT_NEAR(swing.high_w, 650, 20) << period;
    EXPECT_NEAR(swing.low_w, 90, 20) << period;
    EXPECT_NEAR(swing.swing_w(), 560, 30) << period;
  }
}

TEST(Power, NoSwingIsClaimedWhereTheCounterIsTooSlow) {
  const EnergyTrace moves = moves_of(counter(650, 90, 0.5, 0.5, 0.1, 0.005, 10));
  const PowerSwing swing = power_swing(moves, pulses(0.5, 0.5, 2, 8));
  EXPECT_TRUE(std::isnan(swing.swing_w()));
  EXPECT_NEAR(swing.resolution_s, 0.1, 0.01);
  EXPECT_TRUE(std::isnan(power_swing({}, pulses(1, 0.5, 0, 3)).resolution_s));
}

class Powercap : public testing::Test {
 protected:
  std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("assay-powercap-" + std::to_string(getpid()));
  void SetUp() override {
    for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"})
      std::filesystem::create_directories(root / "sys/class/powercap" / zone);
    name("intel-rapl:0", "package-0");
    name("intel-rapl:1", "package-1");
    name("intel-rapl:0:0", "core");
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void name(const std::string& zone, const std::string& text) {
    put(zone, "name", text);
    put(zone, "max_energy_range_uj", "1000000000");
    put(zone, "energy_uj", "999000000");
  }
  void put(const std::string& zone, const std::string& file, const std::string& text) {
    std::ofstream(root / "sys/class/powercap" / zone / file) << text << "\n";
  }
};

TEST_F(Powercap, PackagesAreAddedAndMayStartFromZeroAgain) {
  PackageEnergy energy(root);
  ASSERT_TRUE(energy.tells());
  EXPECT_EQ(energy.read(), 0);
  put("intel-rapl:1", "energy_uj", "999500000");
  EXPECT_NEAR(energy.read(), 0.5, 1e-9);
  put("intel-rapl:0", "energy_uj", "250000");
  EXPECT_NEAR(energy.read(), 0.5 + 1.25, 1e-9);
  put("intel-rapl:0:0", "energy_uj", "999999999");
  EXPECT_NEAR(energy.read(), 1.75, 1e-9) << "cores are within their package";
}

TEST_F(Powercap, AMeterReadsOnItsOwn) {
  PowerMeter meter(nullptr, 0.002, root);
  for (int i = 1; i <= 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    put("intel-rapl:0", "energy_uj", std::to_string(999000000 + 40000 * i));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto readings = meter.finish();
  ASSERT_GT(readings.size(), 10u);
  for (std::size_t i = 1; i < readings.size(); ++i) EXPECT_GT(readings[i].t, readings[i - 1].t);
  EXPECT_NEAR(readings.back().packages_j - readings.front().packages_j, 0.8, 0.05);
  EXPECT_TRUE(meter.finish().empty());
}

TEST(PowerMeter, WithoutAnyCounterThereIsNothing) {
  PowerMeter meter(nullptr, 0.001, "/nonexistent");
  EXPECT_TRUE(meter.finish().empty());
}

}  // namespace
}  // namespace assay
