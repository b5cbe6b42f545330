// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "kernels/pattern.hpp"
#include "measure/sizing.hpp"
#include "measure/statistics.hpp"
#include "suite/gpu_bound.hpp"
#include "suite/together.hpp"
#include "suites/memory/fault_text.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"

namespace assay::memory {
namespace {

using kernels::ErrorLog;
using kernels::Sweep;

/// Detection test: a word of a small region is changed behind the back of the verifying sweep, which must
/// count exactly one error, at that word.
results::SelftestRow selftest(std::uint64_t* words, std::size_t count, Context& context) {
  count = std::min<std::size_t>(count, selftest_bytes / sizeof(std::uint64_t));
  const RandomStream random = context.random.child("selftest");
  const kernels::Data data{kernels::Background::own_address, random.key(), 0, false};
  Sweep write, verify;
  write.write = true;
  write.next = data;
  verify.verify = true;
  verify.expected = data;
  ErrorLog before, after;
  context.device.sweep(write, words, count, before);
  const std::size_t index = random.below(0, count);
  context.device.synchronize();
  flip_bit(context.device, words, index, sizeof(std::uint64_t), static_cast<unsigned>(random.below(1, 64)));
  std::uint64_t word = 0;
  context.device.copy_to_host(&word, words + index, sizeof(word));
  context.device.sweep(verify, words, count, after);
  context.device.synchronize();
  const auto records = after.records();
  const bool located = std::any_of(records.begin(), records.end(),
                                   [&](const auto& r) { return r.index == index && r.actual == word; });
  return {"memory",
          1,
          after.count() > 0 ? 1 : 0,
          located ? 1 : 0,
          static_cast<std::int64_t>(after.count()),
          context.device_entity};
}

/// Bytes per second of one copy of the region's first half to its second: what a read and write can reach
/// here.
double copy_bandwidth(std::uint64_t* words, std::size_t count, Context& context) {
  auto* first = reinterpret_cast<double*>(words);
  const std::size_t half = count / 2;
  const double begin = now_s();
  context.device.stream(kernels::StreamOp::copy, first + half, first, nullptr, half);
  context.device.synchronize();
  return static_cast<double>(2 * half * sizeof(double)) / (now_s() - begin);
}

/// The same of a GPU, whose first launch of a kernel loads it: the median of up to three copies after one,
/// fewer where they are slow.
double gpu_copy_bandwidth(std::uint64_t* words, std::size_t bytes, Context& context) {
  constexpr double enough_s = 0.2;
  const std::size_t count = own_bandwidth_bytes(bytes) / sizeof(std::uint64_t);
  copy_bandwidth(words, count, context);
  std::vector<double> rates;
  for (const double begin = now_s(); rates.size() < 3 && (rates.empty() || now_s() - begin < enough_s);)
    rates.push_back(copy_bandwidth(words, count, context));
  return median(rates);
}

/// One rank's way through a pattern.
class PatternRun {
 public:
  PatternRun(const Case& c, const kernels::Pattern& pattern, Context& context, const OwnBandwidth& earlier,
             const GpuBound& bound)
      : pattern_(pattern),
        context_(context),
        earlier_(earlier),
        bound_(bound),
        together_(context.node),
        bytes_(c.bytes),
        planned_(c.bytes),
        seconds_(c.seconds) {
    for (const Sweep& s : pattern.sweeps) verifying_ += s.verify ? 1 : 0;
    chunks_ = chunk_count(context.device.has_own_memory(), c.bytes, pattern.sweeps.size());
    const double now = now_s();
    late_at_s_ = now + time_until_late_s(chunks_, c.deadline_s > 0 ? c.deadline_s : context.deadline_s - now);
    context.record.parameter("chunks", chunks_);
  }

  void run() {
    const double begin = now_s();
    together_.guarded([&] {
      context_.device.reserve(bytes_);
      words_ = reinterpret_cast<std::uint64_t*>(context_.device.arena().data());
      context_.record.selftest(selftest(words_, count(), context_));
      fit();
    });
    context_.node.barrier();
    const double copy_begin = now_s();
    measure_own();
    context_.record.add_time(now_s() - copy_begin, 0, copy_begin - begin);
    std::size_t done = 0;
    for (; done < pattern_.sweeps.size(); ++done) {
      const Sweep& s = pattern_.sweeps[done];
      if (together_.any(now_s() + s.pause_s + longest_s_ > std::min(context_.end_s, late_at_s_))) break;
      if (s.pause_s > 0) std::this_thread::sleep_for(std::chrono::duration<double>(s.pause_s));
      context_.record.add_time(0, 0, s.pause_s);  // the pause is what retention checks
      context_.node.barrier();
      together_.guarded([&] { one(s, done); });
    }
    together_.guarded([&] { report(done); });
    together_.rethrow();
  }

 private:
  /// A GPU has one bandwidth, which a case of this run may have measured; a region that its cache holds a
  /// part of has another one. The ranks of a node do the same, so that they copy at the same time or not at
  /// all.
  void measure_own() {
    if (!context_.device.has_own_memory())
      return together_.guarded([&] { own_ = copy_bandwidth(words_, count(), context_); });
    const bool known = earlier_.copy > 0 && beyond_cache();
    const bool measured = context_.node.min(known ? 1.0 : 0.0) > 0;
    together_.guarded(
        [&] { own_ = measured ? earlier_.copy : gpu_copy_bandwidth(words_, bytes_, context_); });
    context_.record.parameter("own_bandwidth_from", measured ? earlier_.case_name : "a copy of the region");
  }

  /// Takes as much of the region as all sweeps get through in their share of the time at the rate of a first
  /// part of it. `coverage` tells of the rest.
  void fit() {
    const std::size_t part = probe_bytes(bytes_);
    Sweep write = pattern_.sweeps.front();
    write.verify = write.move = write.powers_only = false;
    write.write = true;
    double least_s = std::numeric_limits<double>::infinity(), pauses_s = 0;
    for (const Sweep& s : pattern_.sweeps) pauses_s += s.pause_s;
    for (int tries = 0; tries < 2; ++tries) {  // the second, since the core may have been away
      ErrorLog log;
      const double begin = now_s();
      context_.device.sweep(write, words_, part / sizeof(std::uint64_t), log);
      context_.device.synchronize();
      context_.apply_injected_delay(begin, 1, true);
      context_.count_batch();
      least_s = std::min(least_s, now_s() - begin);
      const double now = now_s();
      const double share_s = sweeps_share_s(seconds_, context_.end_s - now, late_at_s_ - now, pauses_s);
      bytes_ =
          fitted_region(planned_, static_cast<double>(part) / least_s, pattern_.bytes_per_byte(), share_s);
      if (bytes_ == planned_) return;
    }
    const std::string text = fmt::format("cut short: {} of {} MiB tested, only {:.3g} B/s measured",
                                         bytes_ >> 20, planned_ >> 20, static_cast<double>(part) / least_s);
    context_.record.event("memory-cut-short", pattern_.name + ": " + text, context_.device_entity);
    // The plan itself is a guess of the rate: half of it is as good a test, and `coverage` tells of it.
    if (2 * bytes_ < planned_) context_.record.set_state(results::CaseState::incomplete, text);
  }

  bool beyond_cache() const { return bytes_ >= gpu_cache_multiple * context_.device.cache_bytes(); }
  std::size_t count() const { return bytes_ / sizeof(std::uint64_t); }
  /// Chunks are cut at multiples of 2 MiB, so that every word is in the place that it would have without
  /// chunks.
  std::size_t chunk_begin(std::size_t chunk) const {
    constexpr std::size_t step = (std::size_t{2} << 20) / sizeof(std::uint64_t);
    return chunk == chunks_ ? count() : count() / chunks_ * chunk / step * step;
  }

  /// A third of the chunks, through all sweeps: a GPU writes at another rate than it verifies, so blocks of
  /// sweeps would differ on a healthy one. A region of fewer chunks has thirds of the sweeps.
  std::int32_t block_of(std::size_t sweep, std::size_t chunk) const {
    return static_cast<std::int32_t>(chunks_ < 3 ? sweep * 3 / pattern_.sweeps.size() : chunk * 3 / chunks_);
  }

  /// One sweep over the region: over its chunks in turn, each a sample.
  void one(const Sweep& s, std::size_t index) {
    if (s.verify) context_.injection_point("memory", words_, count(), sizeof(std::uint64_t));
    SweepErrors found{s, index, {}, {}, 0};
    for (std::size_t n = 0; n < chunks_; ++n) {
      const std::size_t chunk = s.down ? chunks_ - 1 - n : n;
      const std::size_t begin = chunk_begin(chunk), end = chunk_begin(chunk + 1);
      Sweep part = s;
      part.first = begin;
      timed(part, index, chunk, end - begin, found);
    }
    verified_ += s.verify ? 1 : 0;
    errors_ += found.count;
    if (found.count > 0 && told_++ < most_told)
      context_.record.event("memory-fault", fault_text(pattern_.name, found), context_.device_entity);
  }

  void timed(const Sweep& s, std::size_t index, std::size_t chunk, std::size_t words, SweepErrors& found) {
    const std::size_t first = s.first;
    ErrorLog log;
    const double begin = now_s();
    context_.device.sweep(s, words_ + first, words, log);
    context_.device.synchronize();
    context_.apply_injected_delay(begin, 1);
    const double seconds = now_s() - begin;
    context_.count_batch();
    t_.push_back(context_.since_start(begin));
    block_.push_back(block_of(index, chunk));
    bandwidth_.push_back(static_cast<double>(words * s.bytes_per_word()) / seconds);
    longest_s_ = std::max(longest_s_, seconds * static_cast<double>(chunks_));
    timed_s_ += seconds;
    const auto records = log.records();
    for (std::size_t i = 0; i < records.size(); ++i) {
      const kernels::ErrorRecord& e = records[i];
      const bool last = i + 1 == records.size();
      const std::uint64_t offset = (first + e.index) * sizeof(std::uint64_t);
      context_.record.miscompare({"", context_.device_entity, offset, e.expected, e.actual, e.reread,
                                  t_.back(), e.sm, e.warp, e.lane},
                                 last ? log.count() - i : 1);
    }
    found.add(log, first);
  }

  void report(std::size_t done) {
    auto& row = context_.record.add_row(context_.device_entity);
    row.t = t_;
    row.block = block_;
    row.values["bandwidth"] = bandwidth_;
    row.values["errors"] = {static_cast<double>(errors_)};
    row.values["coverage"] = {verifying_ == 0
                                  ? 0.0
                                  : static_cast<double>(verified_) / static_cast<double>(verifying_) *
                                        static_cast<double>(bytes_) / static_cast<double>(planned_)};
    row.values["efficiency"] = {own_ > 0 && !bandwidth_.empty() ? median(bandwidth_) / own_
                                                                : results::not_taken};
    if (context_.device.has_own_memory()) {
      row.values["own_bandwidth"] = {own_ > 0 ? own_ : results::not_taken};
      add_bound_share(row, "bandwidth", beyond_cache() ? bound_ : GpuBound{});
    }
    context_.record.add_time(0, timed_s_, 0);
    if (done < pattern_.sweeps.size())
      context_.record.set_state(results::CaseState::incomplete,
                                "cut short after " + std::to_string(done) + " of " +
                                    std::to_string(pattern_.sweeps.size()) +
                                    " sweeps: deadline, or a rank that failed");
  }

  const kernels::Pattern& pattern_;
  Context& context_;
  const OwnBandwidth& earlier_;
  const GpuBound bound_;
  Together together_;
  std::uint64_t bytes_, planned_;
  double seconds_;        ///< planned
  double late_at_s_ = 0;  ///< a rank without progress, as in a long sweep, is taken for hung from then on
  std::uint64_t* words_ = nullptr;
  double own_ = 0, longest_s_ = 0, timed_s_ = 0;
  static constexpr int most_told = 4;  ///< sweeps of a case whose faults are told as events
  std::size_t verifying_ = 0, verified_ = 0, chunks_ = 1;
  int told_ = 0;
  std::uint64_t errors_ = 0;
  std::vector<double> t_, bandwidth_;
  std::vector<std::int32_t> block_;
};

}  // namespace

void run_selftest(const Case& c, Context& context) {
  const double begin = now_s();
  context.device.reserve(c.bytes);
  auto* words = reinterpret_cast<std::uint64_t*>(context.device.arena().data());
  const results::SelftestRow found = selftest(words, c.bytes / sizeof(std::uint64_t), context);
  context.record.selftest(found);
  context.record.declare(metrics().of("selftest", "detected"));
  auto& row = context.record.add_row(context.device_entity);
  row.t = {context.since_start(begin)};
  row.block = {0};
  row.values["detected"] = {static_cast<double>(found.counted)};
  context.record.add_time(0, 0, now_s() - begin);
}

void run_pattern(const Case& c, Context& context, const OwnBandwidth& own) {
  for (const char* name : {"bandwidth", "errors", "coverage"})
    context.record.declare(metrics().of("pattern", name));
  // A host's copy is one pass, which explains; a GPU's rate is held against its own bandwidth.
  const bool gpu = context.device.has_own_memory();
  auto& efficiency = context.record.declare(metrics().of("pattern", "efficiency"));
  GpuBound bound;
  if (gpu) {
    efficiency.role = results::Role::metric;
    efficiency.judging->floor = results::Floor::own_rate;
    context.record.declare(metrics().of("pattern", "own_bandwidth"));
    bound = memory_bound(own_gpu(context));
    bound.floor = 0;  // patterns differ too much for one; their share is shown
    declare_bound(metrics().of("pattern", "bound_share"), bound, context.record);
  }
  const auto pattern = kernels::make_pattern(c.parameters.at("pattern").get<std::string>(),
                                             context.random.key(), c.parameters.value("pause_s", 0.0));
  const auto& node = context.topology.my_node();
  const double ranks = context.node.size();
  context.record.parameter("planned_bytes", c.bytes);
  context.record.parameter("bytes_per_byte", pattern.bytes_per_byte());
  context.record.parameter("sweeps", pattern.sweeps.size());
  context.record.parameter("fault_model", pattern.fault_model);
  if (node.memory_bytes > 0)
    context.record.parameter("node_fraction",
                             static_cast<double>(c.bytes) * ranks / static_cast<double>(node.memory_bytes));
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  PatternRun(c, pattern, context, own, bound).run();
}

}  // namespace assay::memory
