// SPDX-License-Identifier: Apache-2.0
// Counters of GPUs: memory errors, links, Xids, clocks held down. README.md says what each means.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "verdict/constants.hpp"
#include "verdict/counter_totals.hpp"
#include "verdict/judgement.hpp"

namespace assay::verdict {
namespace {

/// What an increase means.
struct Meaning {
  const char* counter;
  const char* severity;
  const char* action;
  double per_hour = 0;  ///< up to this rate it is noted only
  const char* words = "";
};
constexpr std::array meanings = std::to_array<Meaning>({
    {"nvml_ecc_uncorrected", "FAIL", "RESET", 0, "memory errors that ECC could not correct"},
    {"nvml_ecc_sram_uncorrected", "FAIL", "REPLACE", 0,
     "errors of on-chip memory that ECC could not correct"},
    {"nvml_ecc_corrected", "WARN", "MONITOR", constants::gpu_corrected_per_hour, "corrected memory errors"},
    {"nvml_ecc_sram_corrected", "WARN", "MONITOR", constants::gpu_corrected_per_hour,
     "corrected errors of on-chip memory"},
    {"nvml_remapped_correctable", "WARN", "MONITOR", 0, "rows of memory replaced by spare ones"},
    {"nvml_remapped_uncorrectable", "WARN", "RESET", 0,
     "rows of memory to be replaced by spare ones after errors that could not be corrected"},
    {"nvml_pcie_replay", "WARN", "MONITOR", constants::gpu_replays_per_hour, "packets sent again over PCIe"},
    {"nvml_pcie_correctable", "WARN", "MONITOR", constants::gpu_replays_per_hour,
     "corrected errors of the PCIe link"},
    {"nvml_pcie_nonfatal", "WARN", "TRIAGE", 0, "errors of the PCIe link that were not corrected"},
    {"nvml_pcie_fatal", "FAIL", "TRIAGE", 0, "fatal errors of the PCIe link"},
    {"nvml_nvlink_replay", "WARN", "MONITOR", constants::gpu_link_errors_per_hour,
     "packets sent again over NVLink"},
    {"nvml_nvlink_crc", "WARN", "MONITOR", constants::gpu_link_errors_per_hour, "damaged packets on NVLink"},
    {"nvml_nvlink_recovery", "WARN", "TRIAGE", 0, "times that an NVLink had to be brought up again"},
});

struct XidMeaning {
  int number;
  const char* severity;
  const char* action;
  const char* words;
};
constexpr std::array xid_meanings = std::to_array<XidMeaning>({
    {48, "FAIL", "RESET", "double bit ECC error"},
    {63, "WARN", "RESET", "a row of memory waits to be replaced by a spare one"},
    {64, "FAIL", "REPLACE", "a row of memory could not be replaced by a spare one"},
    {74, "WARN", "TRIAGE", "NVLink error"},
    {79, "FAIL", "REBOOT", "the GPU has fallen off the bus"},
    {92, "WARN", "MONITOR", "high rate of single bit ECC errors"},
    {94, "WARN", "RESET", "memory error contained to one program"},
    {95, "FAIL", "RESET", "uncontained memory error"},
    {119, "WARN", "REBOOT", "the GPU's firmware (GSP) does not answer"},
    {120, "WARN", "REBOOT", "error of the GPU's firmware (GSP)"},
});

/// What a program does to itself looks like this, and so does a GPU that computes nonsense.
bool points_at_software(int xid) { return xid == 13 || xid == 31 || xid == 43 || xid == 45; }

double wall_hours(const results::Results& results) {
  double seconds = 0;
  for (const auto& c : results.cases)
    seconds += std::isfinite(c.shares.wall_s) && c.shares.wall_s > 0 ? c.shares.wall_s : 0;
  return seconds / 3600;
}

class GpuCounters {
 public:
  GpuCounters(Judgement& j, const Totals& totals) : j_(j), totals_(totals), hours_(wall_hours(j.results)) {}

  void judge() {
    for (const auto& [key, total] : totals_) {
      const auto& [row, counter] = key;
      if (!is_gpu_counter(counter)) continue;
      if (counter == "nvml_remap_failure" || counter == "nvml_remap_pending")
        remapping(row, counter, total);
      else if (counter.starts_with("xid_"))
        xid(row, std::atoi(counter.c_str() + 4), counter, total);
      else if (is_throttling(counter))
        throttled(row, counter, total);
      else
        rise(row, counter, total);
    }
  }

 private:
  results::Finding about(std::int32_t row, const std::string& counter, const Total& t, const char* severity,
                         const char* action, const char* kind = "counter") {
    auto f = j_.about(row, severity, "fact", kind);
    f.metric = counter;
    f.unit = "count";
    f.better = "lower";
    f.value = t.delta;
    f.reference = 0.0;
    f.suite = t.first_case.substr(0, t.first_case.find('/'));
    f.action = action;
    f.evidence = "/counters";
    return f;
  }
  void add(results::Finding f, std::int32_t row, const std::string& text) {
    f.text = j_.entities.name(row) + ": " + text;
    j_.add(std::move(f), {row});
  }
  const Total* other(std::int32_t row, const char* counter) const {
    const auto at = totals_.find({row, counter});
    return at == totals_.end() ? nullptr : &at->second;
  }

  void rise(std::int32_t row, const std::string& counter, Total t) {
    const auto meaning = std::find_if(meanings.begin(), meanings.end(),
                                      [&](const Meaning& m) { return counter == m.counter; });
    if (meaning == meanings.end()) return;
    // Those of on-chip memory are among all of them, and have a finding of their own.
    if (counter == "nvml_ecc_uncorrected" || counter == "nvml_ecc_corrected")
      if (const auto* sram = other(
              row, counter == "nvml_ecc_corrected" ? "nvml_ecc_sram_corrected" : "nvml_ecc_sram_uncorrected"))
        t.delta -= sram->delta;
    if (t.delta <= 0) return;
    const bool rare = meaning->per_hour > 0 &&
                      (t.delta < constants::gpu_few_events || t.delta <= meaning->per_hour * hours_);
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "%.0f ", t.delta);
    add(about(row, counter, t, rare ? "INFO" : meaning->severity, meaning->action), row,
        numbers + std::string(meaning->words) + " (" + counter + "), first in " + t.first_case);
  }

  // States rather than counts: they stand from before the run.
  void remapping(std::int32_t row, const std::string& counter, const Total& t) {
    if (!(t.after > 0)) return;
    const bool failure = counter == "nvml_remap_failure";
    auto f = about(row, counter, t, failure ? "FAIL" : "WARN", failure ? "REPLACE" : "RESET");
    f.value = t.after;
    add(std::move(f), row,
        failure ? "a row of memory could not be replaced by a spare one"
                : "a row of memory waits for a reset of the GPU to be replaced by a spare one");
  }

  bool failed_a_check(std::int32_t row) const {
    return std::any_of(j_.found.begin(), j_.found.end(), [&](const Found& f) {
      return f.finding.kind == "corrupt" && std::find(f.rows.begin(), f.rows.end(), row) != f.rows.end();
    });
  }

  void xid(std::int32_t row, int number, const std::string& counter, const Total& t) {
    if (t.delta <= 0) return;
    const auto known = std::find_if(xid_meanings.begin(), xid_meanings.end(),
                                    [&](const XidMeaning& m) { return m.number == number; });
    XidMeaning meaning = known != xid_meanings.end()
                             ? *known
                             : XidMeaning{number, "WARN", "TRIAGE", "the driver reported an error"};
    if (points_at_software(number))
      meaning =
          failed_a_check(row)
              ? XidMeaning{number, "FAIL", "TRIAGE", "an exception on a GPU that also failed a check"}
              : XidMeaning{number, "INFO", "MONITOR", "usually a software error, unless a check fails too"};
    add(about(row, counter, t, meaning.severity, meaning.action), row,
        "Xid " + std::to_string(number) + " (" + meaning.words + ")" +
            (t.delta > 1 ? ", " + std::to_string(static_cast<int>(std::min(t.delta, 1e9))) + " times" : "") +
            ", first in " + t.first_case);
  }

  void throttled(std::int32_t row, const std::string& counter, const Total& t) {
    // The sum over all thermal reasons counts only where the driver does not tell the hardware's own apart.
    if (counter == all_thermal) {
      const Total* own = other(row, hardware_thermal);
      if (own != nullptr && own->readable) return;
    }
    if (t.delta <= 0) return;
    auto f = about(row, counter, t, "WARN", "TRIAGE", "throttled");
    f.unit = "s";
    f.value = t.delta * 1e-9;
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, "limited its clocks for %.3g s in %lld case%s, %.3g s of it in ",
                  t.delta * 1e-9, static_cast<long long>(t.cases), t.cases == 1 ? "" : "s", t.worst * 1e-9);
    const char* why = counter == "nvml_violation_hw_brake_ns" ? "the power brake of the board" : "heat";
    add(std::move(f), row, std::string(why) + " " + numbers + t.worst_case + " (" + counter + ")");
  }

  Judgement& j_;
  const Totals& totals_;
  double hours_;
};

}  // namespace

bool is_gpu_counter(const std::string& counter) {
  return counter.starts_with("nvml_") || counter.starts_with("xid_");
}

void judge_gpu_counters(Judgement& j, const Totals& totals) { GpuCounters(j, totals).judge(); }

}  // namespace assay::verdict
