// SPDX-License-Identifier: Apache-2.0
#include "run/injector.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/glob.hpp"
#include "device/corrupt.hpp"
#include "run/fault_plan.hpp"
#include "transport/agree.hpp"

namespace assay {

/// Its name is what a stack trace of the stuck rank must show.
[[noreturn, gnu::noinline]] void injected_hang() {
  for (;;) {
    pause();
    asm volatile("");  // keeps the frame
  }
}

namespace {

void spin(double seconds) noexcept {
  const double end = now_s() + seconds;
  while (now_s() < end) {
  }
}

void sleep_for(double seconds) {
  constexpr double longest_s = 1e9;  // fits the clock
  std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, longest_s)));
}

bool strikes_at_start(FaultKind kind) noexcept {
  return kind == FaultKind::hang || kind == FaultKind::crash || kind == FaultKind::exit ||
         kind == FaultKind::throwing || kind == FaultKind::nomem;
}

bool changes_values(FaultKind kind) noexcept { return kind == FaultKind::bitflip || kind == FaultKind::nan; }

}  // namespace

Injector::Injector(const std::vector<FaultSpec>& faults, std::uint64_t seed, Location location,
                   Device& device)
    : location_(std::move(location)), device_(device) {
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (!faults[i].hits_rank(location_.rank, location_.node_name, location_.node, location_.device)) continue;
    const auto random = RandomStream(faults[i].seed.value_or(seed), "inject")
                            .child(std::to_string(i))
                            .child(std::to_string(location_.rank));
    faults_.push_back({faults[i], random, random, false, 0, 0, 0, 0, ""});
  }
}

void Injector::begin_case(const Case& c, const std::vector<results::MetricSpec>& metrics,
                          Communicator& world) {
  case_path_ = c.path();
  std::optional<Error> failure;
  for (Fault& fault : faults_) {
    fault.active = fault_hits_case(fault.spec, c, metrics);
    fault.of_case = fault.random.child(case_path_);
    fault.seen = fault.in_case = 0;
    fault.spent_s = 0;
    if (fault.spec.kind == FaultKind::clock && fault.total == 0)
      fire(fault,
           fmt::format("clock wrong by {} s and {} ppm", fault.spec.clock_offset_s, fault.spec.clock_ppm));
    if (!fault.active || fault.spec.step || !strikes_at_start(fault.spec.kind) || early(fault)) continue;
    if (auto error = error_of([&] { strike(fault); })) failure = std::move(error);
  }
  agree_error(world, failure);
}

void Injector::end_case(CaseRecord& record) {
  for (Fault& fault : faults_) {
    if (fault.in_case > 0) record.event("inject", summary(fault), location_.entity);
    fault.active = false;
    fault.in_case = 0;
  }
}

double Injector::timed(double begin_s, std::uint64_t repetitions, bool warmup, std::string_view server) {
  const double elapsed = now_s() - begin_s;
  double spin_s = 0, stall_s = 0;
  for (Fault& fault : faults_) {
    const FaultKind kind = fault.spec.kind;
    if (!fault.active || changes_values(kind) || kind == FaultKind::drop) continue;
    if (warmup && (kind != FaultKind::slow || fault.spec.step)) continue;
    if (!fault.spec.server.empty() && (server.empty() || !glob_match(fault.spec.server, std::string(server))))
      continue;
    const std::uint64_t n = hits(fault, repetitions, warmup);
    if (n == 0) continue;
    double extra_s = 0;
    if (kind == FaultKind::slow)
      spin_s += extra_s = elapsed * static_cast<double>(n) / static_cast<double>(repetitions) *
                          (1 / factor_now(fault.spec) - 1);
    if (kind == FaultKind::stall) stall_s += extra_s = static_cast<double>(n) * fault.spec.seconds;
    if (strikes_at_start(kind)) {
      if (fault.spec.step) strike(fault);
      continue;
    }
    if (extra_s <= 0) continue;
    if (warmup) {
      ++fault.total;  // it took effect, though a part this slow may never get to a timed region
      continue;
    }
    fault.spent_s += extra_s;
    fire(fault, "timed region made longer");
  }
  if (stall_s > 0) sleep_for(stall_s);
  if (spin_s > 0) spin(spin_s);
  return elapsed > 0 ? (elapsed + spin_s + stall_s) / elapsed : 1.0;
}

bool Injector::corrupt(std::string_view target, void* data, std::size_t count, std::size_t element_bytes) {
  bool changed = false;
  for (Fault& fault : faults_) {
    if (!fault.active || !changes_values(fault.spec.kind) || fault.spec.target != target) continue;
    const std::uint64_t index = fault.seen++;
    // Once per case: one wrong value is what is hardest to find.
    if (fault.in_case > 0 || early(fault) || (fault.spec.step && index != *fault.spec.step)) continue;
    changed = change(fault, data, count, element_bytes) || changed;
  }
  return changed;
}

bool Injector::change(Fault& fault, void* data, std::size_t count, std::size_t element_bytes) {
  const FaultSpec& spec = fault.spec;
  if (count == 0) return false;
  const std::uint64_t word = spec.word.value_or(fault.of_case.below(0, count));
  const std::uint64_t bit = spec.bit.value_or(fault.of_case.below(1, 8 * element_bytes));
  if (word >= count || bit >= 8 * element_bytes) return false;  // not there: the fault does not come about
  if (spec.kind == FaultKind::nan) {
    store_nan(device_, data, word, element_bytes);
    fire(fault, fmt::format("NaN in element {} of {}", word, count));
  } else {
    flip_bit(device_, data, word, element_bytes, static_cast<unsigned>(bit));
    fire(fault, fmt::format("bit {} flipped in element {} of {}", bit, word, count));
  }
  device_.synchronize();
  return true;
}

bool Injector::lost(int /*source*/) {
  bool out = false;
  for (Fault& fault : faults_) {
    if (!fault.active || fault.spec.kind != FaultKind::drop) continue;
    if (!due(fault, fault.seen++) || early(fault)) continue;
    fire(fault, "message lost");
    out = true;
  }
  return out;
}

double Injector::hold_back_s(int source, double seconds) {
  double out = 0;
  for (Fault& fault : faults_) {
    if (!fault.active || fault.spec.kind != FaultKind::slowlink || fault.spec.pair_source != source) continue;
    if (early(fault)) continue;
    const double extra_s = seconds * (1 / fault.spec.factor - 1);
    fault.spent_s += extra_s;
    fire(fault, fmt::format("transfer from rank {} held back", source));
    out += extra_s;
  }
  return out;
}

void Injector::arrived(void* data, std::size_t bytes) {
  const std::size_t word = bytes < 8 ? 1 : 8;
  corrupt("message", data, bytes / word, word);
}

double Injector::clock_drift_s(double t) const noexcept {
  double drift = 0;
  for (const Fault& fault : faults_)
    if (fault.spec.kind == FaultKind::clock)
      drift += fault.spec.clock_ppm * 1e-6 * (t - location_.run_start_s);
  return drift;
}

double Injector::clock_error_s(double t) const noexcept {
  double error = clock_drift_s(t);
  for (const Fault& fault : faults_)
    if (fault.spec.kind == FaultKind::clock) error += fault.spec.clock_offset_s;
  return error;
}

bool Injector::wrong_clock() const noexcept {
  for (const Fault& fault : faults_)
    if (fault.spec.kind == FaultKind::clock) return true;
  return false;
}

std::vector<std::string> Injector::never_fired() const {
  std::vector<std::string> texts;
  for (const Fault& fault : faults_)
    if (fault.total == 0 && fault.spec.kind != FaultKind::diskfull) texts.push_back(fault.spec.text);
  return texts;
}

void Injector::fire(Fault& fault, const std::string& what) {
  ++fault.in_case;
  ++fault.total;
  fault.what = what;
}

void Injector::strike(Fault& fault) {
  const std::string where = fmt::format("rank {}: ", location_.rank);
  switch (fault.spec.kind) {
    case FaultKind::hang: injected_hang();
    case FaultKind::crash: raise(SIGKILL); break;
    case FaultKind::exit: _exit(fault.spec.exit_code);
    case FaultKind::throwing:
      fire(fault, "exception thrown");
      throw Error(ErrorKind::device, where + "injected exception in " + case_path_);
    case FaultKind::nomem:
      fire(fault, "allocation failed");
      throw Error(ErrorKind::resource, where + "injected allocation failure in " + case_path_);
    default: break;
  }
}

bool Injector::due(const Fault& fault, std::uint64_t index) const {
  return fault.spec.step ? index == *fault.spec.step
                         : fault.spec.duty >= 1 || fault.of_case.uniform(index) < fault.spec.duty;
}

double Injector::factor_now(const FaultSpec& spec) const {
  if (spec.ramp_s <= 0) return spec.factor;
  const double since_s = now_s() - location_.run_start_s - spec.after_s;
  return 1 - (1 - spec.factor) * std::clamp(since_s / spec.ramp_s, 0.0, 1.0);
}

bool Injector::early(const Fault& fault) const {
  return now_s() - location_.run_start_s < fault.spec.after_s;
}

/// How many of the next `repetitions` are hit. Those of a warm-up do not count as steps.
std::uint64_t Injector::hits(Fault& fault, std::uint64_t repetitions, bool warmup) {
  const FaultSpec& spec = fault.spec;
  const std::uint64_t first = fault.seen;
  if (!warmup) fault.seen += repetitions;
  if (early(fault)) return 0;
  if (spec.step) return first <= *spec.step && *spec.step - first < repetitions ? 1 : 0;
  if (spec.duty >= 1) return repetitions;
  // Drawing for each of a million repetitions would take longer than they do.
  constexpr std::uint64_t many = 4096;
  if (warmup || repetitions > many)
    return static_cast<std::uint64_t>(std::lround(static_cast<double>(repetitions) * spec.duty));
  std::uint64_t n = 0;
  for (std::uint64_t i = first; i < first + repetitions; ++i) n += due(fault, i) ? 1 : 0;
  return n;
}

std::string Injector::summary(const Fault& fault) const {
  std::string text =
      fmt::format("{}: rank {}, {}: {}", fault.spec.text, location_.rank, case_path_, fault.what);
  if (fault.in_case > 1) text += fmt::format(", {} times", fault.in_case);
  if (fault.spent_s > 0) text += fmt::format(", {:.6f} s in all", fault.spent_s);
  return text;
}

}  // namespace assay
