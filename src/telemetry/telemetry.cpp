// SPDX-License-Identifier: Apache-2.0
#include "telemetry/telemetry.hpp"

#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "telemetry/periodic_sampler.hpp"

namespace assay {

/// What the library's thread writes; it may come late, after the reader is gone.
struct TelemetrySheet {
  struct OfGpu {
    int number = 0;  ///< of the driver
    std::map<std::string, double> values;
    double energy_j = unsupported;
    double t = 0;  ///< of the energy
    Reading reasons;
  };
  std::vector<OfGpu> gpus;
};

namespace {

using Sheet = TelemetrySheet;
using Values = std::map<std::string, double>;

Sheet::OfGpu sample(const Nvml& nvml, int gpu) {
  Sheet::OfGpu out;
  // A quantity that a GPU does not have never gets a column; one that does not answer now is NaN in it.
  const auto put = [&out](const char* name, const Reading& reading) {
    if (reading.told != Told::absent) out.values[name] = reading.value;
  };
  out.number = nvml.driver_number(gpu);
  const Reading energy = nvml.energy_j(gpu);
  out.t = now_s();
  out.energy_j = energy.value;
  if (energy.told != Told::absent) out.values["power"] = unsupported;
  put("sm_clock", nvml.clock_hz(gpu, nvml::clock_sm));
  put("memory_clock", nvml.clock_hz(gpu, nvml::clock_memory));
  put("temperature", nvml.temperature_k(gpu));
  Reading memory = nvml.field(gpu, nvml::field::memory_temperature);
  memory.value += 273.15;
  put("memory_temperature", memory);
  put("utilisation", nvml.utilisation(gpu, false));
  put("memory_utilisation", nvml.utilisation(gpu, true));
  put("pcie_generation", nvml.pcie_generation(gpu));
  put("pcie_width", nvml.pcie_width(gpu));
  out.reasons = nvml.throttle_reasons(gpu);
  return out;
}

constexpr auto reason_names = std::to_array<std::pair<unsigned long long, const char*>>({
    {nvml::throttle::idle, "idle"},
    {nvml::throttle::application_clocks, "application_clocks"},
    {nvml::throttle::sw_power_cap, "sw_power_cap"},
    {nvml::throttle::hw_slowdown, "hw_slowdown"},
    {nvml::throttle::sync_boost, "sync_boost"},
    {nvml::throttle::sw_thermal, "sw_thermal"},
    {nvml::throttle::hw_thermal, "hw_thermal"},
    {nvml::throttle::hw_power_brake, "hw_power_brake"},
    {nvml::throttle::display, "display"},
});

constexpr std::size_t most_samples = 4096, most_flags = 4096;  ///< of a node or GPU in a case

void thin_out(TelemetryChunk::Series& series) {
  const auto thin = [](std::vector<double>& values) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < values.size(); i += 2) values[kept++] = values[i];
    values.resize(kept);
  };
  thin(series.t);
  for (auto& [name, values] : series.values) thin(values);
}

void add_sample(TelemetryChunk::Series& series, double t, const Values& values) {
  if (values.empty()) return;
  if (series.t.size() >= most_samples) thin_out(series);
  for (const auto& [name, value] : values) {
    auto& column = series.values[name];
    column.resize(series.t.size(), unsupported);
    column.push_back(value);
  }
  series.t.push_back(t);
  for (auto& [name, column] : series.values) column.resize(series.t.size(), unsupported);
}

}  // namespace

std::string unit_of_quantity(const std::string& quantity) {
  if (quantity.ends_with("clock")) return "Hz";
  if (quantity.ends_with("temperature")) return "K";
  if (quantity == "power") return "W";
  return quantity == "pcie_width" ? "count" : "1";
}

void ThrottleFlags::add(double t, unsigned long long reasons, const std::string& gpu,
                        std::vector<TelemetryChunk::Flag>& out) {
  for (const auto& [bit, name] : reason_names) {
    if (((reasons ^ recorded_) & bit) == 0) continue;
    const bool set = (reasons & bit) != 0;
    if (set && flags_ >= most_flags) {
      dropped_ += (before_ & bit) == 0 ? 1 : 0;
      continue;  // and what clears it; what clears a recorded one is never dropped
    }
    out.push_back({t, "device", gpu, name, set});
    recorded_ ^= bit;
    ++flags_;
  }
  before_ = reasons;
}

std::size_t ThrottleFlags::take() noexcept {
  flags_ = 0;
  return std::exchange(dropped_, 0);
}

double PowerOfMoves::add(double t, double joules) noexcept {
  if (std::isnan(joules) || joules == joules_) return unsupported;
  const double power = (joules - joules_) / (t - t_);
  t_ = t;
  joules_ = joules;
  return power >= 0 ? power : unsupported;  // less than before: the driver was loaded again
}

struct Telemetry::Impl {
  std::string node;
  std::shared_ptr<NvmlThread> nvml;
  NodeSensors sensors;
  double period_s;
  std::size_t every, readings = 0;
  std::mutex mutex;
  TelemetryChunk chunk;  ///< series 0 is the node, the others its GPUs
  struct Last {
    std::string name;
    PowerOfMoves power;
    ThrottleFlags flags;
  };
  std::vector<Last> last;                  ///< of each GPU
  std::optional<PeriodicSampler> sampler;  ///< after all that its thread uses

  Impl(std::string name, std::shared_ptr<NvmlThread> library, double hz, std::size_t one_of,
       const std::string& root)
      : node(std::move(name)), nvml(std::move(library)), sensors(root), period_s(1 / hz), every(one_of) {
    chunk.series.push_back({"node", node, {}, {}});
    sampler.emplace([this] {
      tick();
      return period_s;
    });
  }

  void tick() {
    constexpr double patience_s = 1;
    const double t = now_s();
    const bool kept = readings++ % every == 0;
    const Values own = sensors.read(t);  // also of one that is not kept: power is that since the one before
    auto sheet = std::make_shared<Sheet>();
    const auto fill = [sheet](Nvml& library) {
      Sheet whole;
      for (int gpu = 0; gpu < library.count(); ++gpu) whole.gpus.push_back(sample(library, gpu));
      *sheet = std::move(whole);
    };
    if (nvml != nullptr && !nvml->call(fill, patience_s)) sheet = std::make_shared<Sheet>();
    const std::scoped_lock lock(mutex);
    if (kept) add_sample(chunk.series[0], t, own);
    while (last.size() < sheet->gpus.size()) {
      const int number = sheet->gpus[last.size()].number;
      last.emplace_back().name = node + "/gpu" + std::to_string(number);
      chunk.series.push_back({"device", last.back().name, {}, {}});
    }
    for (std::size_t gpu = 0; gpu < sheet->gpus.size(); ++gpu) {
      add_gpu(gpu, t, sheet->gpus[gpu], kept);
      add_flags(gpu, t, sheet->gpus[gpu]);
    }
  }

  void add_gpu(std::size_t gpu, double t, Sheet::OfGpu& of, bool kept) {
    // What the driver calls power is a mean over a second or so; energy tells the mean of just this time.
    const double power = last[gpu].power.add(of.t, of.energy_j);
    if (of.values.contains("power")) of.values["power"] = power;
    if (kept) add_sample(chunk.series[gpu + 1], t, of.values);
  }

  void add_flags(std::size_t gpu, double t, const Sheet::OfGpu& of) {
    if (of.reasons.told != Told::value) return;
    const auto reasons = static_cast<unsigned long long>(of.reasons.value);
    last[gpu].flags.add(t, reasons, last[gpu].name, chunk.flags);
  }
};

Telemetry::Telemetry(const std::string& node_name, std::shared_ptr<NvmlThread> nvml, double hz,
                     std::size_t every, const std::string& root)
    : impl_(std::make_unique<Impl>(node_name, std::move(nvml), hz, every, root)) {}

Telemetry::~Telemetry() = default;  // the sampler waits for no sensor longer than a second

TelemetryChunk Telemetry::take() {
  const std::scoped_lock lock(impl_->mutex);
  TelemetryChunk out;
  out.flags = std::exchange(impl_->chunk.flags, {});
  for (std::size_t gpu = 0; gpu < impl_->last.size(); ++gpu) {
    if (const auto dropped = impl_->last[gpu].flags.take(); dropped > 0)
      out.dropped.emplace_back(impl_->last[gpu].name, dropped);
  }
  for (auto& series : impl_->chunk.series) {
    if (series.t.empty()) continue;
    out.series.push_back({series.entity_kind, series.entity_name, std::exchange(series.t, {}),
                          std::exchange(series.values, {})});
  }
  return out;
}

}  // namespace assay
