// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_counters.hpp"

#include <array>
#include <iterator>

namespace assay {
namespace {

/// How long the driver may take for all counters of a node, whose cores may all be busy.
constexpr double patience_s = 10;

struct Line {
  const char* name;
  bool error;
};
// In the order in which `lines_of` fills them.
constexpr std::array lines = std::to_array<Line>({
    {"nvml_ecc_corrected", true},
    {"nvml_ecc_uncorrected", true},
    {"nvml_ecc_sram_corrected", true},
    {"nvml_ecc_sram_uncorrected", true},
    {"nvml_remapped_correctable", true},
    {"nvml_remapped_uncorrectable", true},
    {"nvml_remap_pending", true},
    {"nvml_remap_failure", true},
    {"nvml_pcie_replay", true},
    {"nvml_energy_j", false},
    {"nvml_nvlink_replay", true},
    {"nvml_nvlink_recovery", true},
    {"nvml_nvlink_crc", true},
    {"nvml_pcie_correctable", true},
    {"nvml_pcie_nonfatal", true},
    {"nvml_pcie_fatal", true},
    {"nvml_violation_power_ns", false},
    {"nvml_violation_thermal_ns", false},
    {"nvml_violation_sync_boost_ns", false},
    {"nvml_violation_board_limit_ns", false},
    {"nvml_violation_low_utilization_ns", false},
    {"nvml_violation_reliability_ns", false},
    {"nvml_violation_sw_thermal_ns", false},
    {"nvml_violation_hw_thermal_ns", true},
    {"nvml_violation_hw_brake_ns", true},
});
constexpr std::array<unsigned, 12> field_lines = {nvml::field::pcie_correctable,
                                                  nvml::field::pcie_nonfatal,
                                                  nvml::field::pcie_fatal,
                                                  nvml::field::violation_power,
                                                  nvml::field::violation_thermal,
                                                  nvml::field::violation_sync_boost,
                                                  nvml::field::violation_board_limit,
                                                  nvml::field::violation_low_utilization,
                                                  nvml::field::violation_reliability,
                                                  nvml::field::violation_sw_thermal,
                                                  nvml::field::violation_hw_thermal,
                                                  nvml::field::violation_hw_brake};

std::vector<Reading> lines_of(const Nvml& nvml, int gpu) {
  std::vector<Reading> out;
  for (const bool sram : {false, true})
    for (const int type : {nvml::error_corrected, nvml::error_uncorrected})
      out.push_back(nvml.ecc_errors(gpu, type, sram));
  const auto rows = nvml.remapped_rows(gpu);
  const auto links = nvml.link_errors(gpu);
  for (const Reading& reading :
       {rows.correctable, rows.uncorrectable, rows.pending, rows.failure, nvml.pcie_replays(gpu),
        nvml.energy_j(gpu), links.replay, links.recovery, links.crc})
    out.push_back(reading);
  std::vector<Nvml::FieldOf> wanted;
  for (const unsigned id : field_lines) wanted.push_back({id, 0});
  const auto fields = nvml.fields(gpu, wanted);
  out.insert(out.end(), fields.begin(), fields.end());
  return out;
}

constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

}  // namespace

// What the thread of the library writes; owned by it and the asker both.
struct GpuCounters::Sheet {
  std::vector<std::vector<Reading>> gpus;
  std::vector<Xid> xids;
  std::vector<bool> listens;
  bool filled = false;
};

void GpuCounters::fill(Nvml& nvml, Sheet& sheet) {
  for (int gpu = 0; gpu < nvml.count(); ++gpu) {
    sheet.gpus.push_back(lines_of(nvml, gpu));
    sheet.listens.push_back(nvml.listens_to(gpu));
  }
  sheet.xids = nvml.take_xids();
  sheet.filled = true;
}

std::shared_ptr<GpuCounters::Sheet> GpuCounters::ask() {
  auto sheet = std::make_shared<Sheet>();
  if (!thread_->call([sheet](Nvml& nvml) { fill(nvml, *sheet); }, patience_s)) return nullptr;
  return sheet->filled ? sheet : nullptr;
}

GpuCounters::GpuCounters(std::shared_ptr<NvmlThread> thread) : thread_(std::move(thread)) {
  const auto numbers = std::make_shared<std::vector<int>>();
  const auto start = [numbers](Nvml& nvml) {
    for (int gpu = 0; gpu < nvml.count(); ++gpu) numbers->push_back(nvml.driver_number(gpu));
    nvml.listen();
  };
  if (!thread_->call(start, patience_s)) {
    // One counter that can never be read stands for all of them.
    counters_.push_back({0, "nvml_ecc_uncorrected", true});
    place_.emplace_back(0, 0);
    return;
  }
  numbers_ = *numbers;
  gpus_ = static_cast<int>(numbers_.size());
  const auto sheet = ask();
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    for (std::size_t line = 0; line < lines.size(); ++line) {
      // What fails at the first time was there to be read: its silence must not count as health.
      const bool there = sheet == nullptr || sheet->gpus[at][line].told != Told::absent;
      (there ? counters_ : absent_).push_back({gpu, lines[line].name, lines[line].error});
      if (there) place_.emplace_back(gpu, line);
    }
    const bool listens = sheet == nullptr || sheet->listens[at];
    xid_at_.push_back(listens ? counters_.size() : nowhere);
    (listens ? counters_ : absent_).push_back({gpu, "nvml_xid", false});
    if (listens) place_.emplace_back(gpu, nowhere);
  }
  if (sheet != nullptr) take_xids(*sheet);
}

void GpuCounters::take_xids(const Sheet& sheet) {
  for (const Xid& xid : sheet.xids) {
    const std::pair key{xid.gpu, xid.number};
    xids_[key] += 1;
    if (!xid_counter_.emplace(key, counters_.size()).second) continue;
    counters_.push_back({xid.gpu, "xid_" + std::to_string(xid.number), true});
    place_.emplace_back(xid.gpu, nowhere);
  }
}

std::vector<double> GpuCounters::read() {
  const auto sheet = ask();
  if (sheet != nullptr) take_xids(*sheet);
  std::vector<double> values(counters_.size(), unsupported);
  if (sheet == nullptr) return values;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const auto [gpu, line] = place_[i];
    if (line != nowhere) values[i] = sheet->gpus[static_cast<std::size_t>(gpu)][line].value;
  }
  for (const std::size_t at : xid_at_)
    if (at != nowhere) values[at] = 0;
  for (const auto& [key, count] : xids_) {
    values[xid_counter_.at(key)] = count;
    if (const std::size_t at = xid_at_[static_cast<std::size_t>(key.first)]; at != nowhere)
      values[at] += count;
  }
  return values;
}

std::vector<std::string> gpu_counter_names() {
  std::vector<std::string> names;
  for (const Line& line : lines) names.emplace_back(line.name);
  return names;
}

std::string words_of_xid(int number) {
  switch (number) {
    case 13: return "graphics engine exception";
    case 31: return "GPU memory page fault";
    case 43: return "GPU stopped processing";
    case 45: return "preemptive cleanup after earlier errors";
    case 48: return "double bit ECC error";
    case 63: return "row remapping or page retirement recorded";
    case 64: return "row remapping or page retirement failed";
    case 74: return "NVLink error";
    case 79: return "GPU has fallen off the bus";
    case 92: return "high rate of single bit ECC errors";
    case 94: return "contained memory error";
    case 95: return "uncontained memory error";
    case 119: return "GSP firmware does not answer";
    case 120: return "GSP firmware error";
    default: return {};
  }
}

}  // namespace assay
