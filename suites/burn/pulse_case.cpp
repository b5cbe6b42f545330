// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "suite/device_power.hpp"
#include "suite/together.hpp"
#include "suites/burn/burn_cases.hpp"
#include "suites/burn/burn_metrics.hpp"
#include "suites/burn/burner.hpp"
#include "transport/clock_sync.hpp"

namespace assay::burn {
namespace {

/// This rank's clock for a time of rank 0's. Clocks of different nodes drift apart by some microseconds a
/// second, so that an offset taken at the start of a train would be a millisecond wrong at its end: how fast
/// they drift is known from the start of the run. Collective.
class RootClock {
 public:
  explicit RootClock(Context& context) {
    constexpr double least_s = 20;  // under it the errors of the two offsets are larger than the drift
    offset_ = estimate_clock_offset(context.world, 20, false, context.clock()).offset_s;
    double root_start = context.world.rank() == 0 ? context.run_start_s : 0;
    root_start = context.world.sum(root_start);
    taken_ = now_s();
    const double elapsed = taken_ - context.run_start_s;
    if (elapsed >= least_s) slope_ = (offset_ - (root_start - context.run_start_s)) / elapsed;
  }
  double root(double mine) const noexcept { return mine + offset_ + slope_ * (mine - taken_); }
  double mine(double root) const noexcept { return taken_ + (root - taken_ - offset_) / (1 + slope_); }

 private:
  double offset_ = 0, taken_ = 0, slope_ = 0;
};

/// Sleeps, and for the last moment looks at the clock: who sleeps wakes some 50 us late. The device rests.
void wait_until(double t) {
  constexpr double watched_s = 3e-4;
  const double sleep = t - now_s() - watched_s;
  if (sleep > 0) std::this_thread::sleep_for(std::chrono::duration<double>(sleep));
  while (now_s() < t) {
  }
}

/// What a rank did in a pulse, by its own clock.
struct Done {
  double first_s = 0, last_s = 0, flops = 0;
};

class PulseRun {
 public:
  PulseRun(const Case& c, Context& context)
      : pulse_(pulse_of(c)),
        context_(context),
        together_(context.world),
        recorder_(context, context.device_entity),
        takes_part_(context.topology.me().node < pulse_.nodes),
        power_(context, std::clamp(pulse_.train.shortest_phase_s() / 20, 2e-3, 0.05)) {}

  void run() {
    const double begin = now_s();
    choose_size();
    if (!together_.any(false)) {
      context_.record.add_time(now_s() - begin, 0, 0);
      train();
    }
    const EnergyTrace energy = power_.finish();
    if (!together_.any(false)) report(energy);
    together_.rethrow();
  }

 private:
  /// A product must be short beside a pulse, so that 16 fit the shorter phase: grown from a small one, so
  /// that a device at a hundredth of its speed is not asked for a large one. All take the smallest size that
  /// any has found; a device that needs less than half of the largest keeps its own, and holds no other back.
  void choose_size() {
    together_.guarded([&] {
      if (takes_part_) grow();
    });
    if (together_.any(false)) return;
    const double mine = static_cast<double>(n_);
    largest_ = static_cast<std::size_t>(context_.world.max(mine));
    const auto least = static_cast<std::size_t>(context_.world.min(takes_part_ ? mine : 1e9));
    if (takes_part_ && 2 * n_ >= largest_) n_ = 2 * least >= largest_ ? least : largest_ / 2;
    largest_ = static_cast<std::size_t>(context_.world.max(static_cast<double>(n_)));
    together_.guarded([&] {
      if (takes_part_) set_up();
    });
    if (together_.any(false)) return;
    context_.record.parameter("n", largest_);
    together_.guarded([&] {
      if (!takes_part_) return;
      product_->digest();
      trial_ = try_product(*product_, context_.device, context_.random.child("trial"), hooks_at(recorder_));
    });
  }

  void grow() {
    constexpr double growth = 8;  // of the time with twice the size
    const double longest_s = pulse_.train.shortest_phase_s() / 16;
    n_ = pulse_.n;
    while (n_ > 64) n_ /= 2;
    for (; 2 * n_ <= pulse_.n; n_ *= 2) {
      // The first products start the library's threads, and the core may have been away.
      double single_s = set_up();
      for (int tries = 0; tries < 6 && growth * single_s > longest_s; ++tries)
        single_s = std::min(single_s, set_up());
      if (growth * single_s > longest_s) break;
    }
  }

  /// Seconds of one product.
  double set_up() {
    layout_ = workload::make_product_layout(pulse_.type, {n_, n_, n_}, 0, ~std::uint64_t{0});
    context_.device.reserve(layout_.bytes());
    product_.emplace(context_.device, pulse_.type, GemmShape{n_, n_, n_}, layout_,
                     context_.device.arena().data(), context_.inputs().child("pulse"), hooks_at(recorder_));
    constexpr int few = 4;
    product_->queue(1);
    context_.device.synchronize();
    const double begin = now_s();
    product_->queue(few);
    context_.device.synchronize();
    recorder_.apply_injected_delay(begin, few, true);
    batch_s_ = (now_s() - begin) / few * static_cast<double>(layout_.outputs);
    product_->check();
    return batch_s_ / static_cast<double>(layout_.outputs);
  }

  void train() {
    const RootClock clock(context_);
    constexpr double head_start_s = 0.2;
    zero_root_ = context_.world.max(clock.root(now_s())) + head_start_s;
    const auto times = [&](int k) {
      return PulseTimes{clock.mine(zero_root_ + pulse_.train.begin_s(k)),
                        clock.mine(zero_root_ + pulse_.train.end_s(k)),
                        clock.mine(zero_root_ + pulse_.train.begin_s(k + 1))};
    };
    for (int k = 0; takes_part_ && k < pulse_.train.pulses; ++k) {
      times_.push_back(times(k));
      together_.guarded([&] { done_.push_back(one(k, times_.back())); });
      context_.count_batch();
    }
    // Ranks that do not pulse sleep until here.
    context_.world.quiet_barrier();
    std::vector<double> late(static_cast<std::size_t>(pulse_.train.pulses), -1e9), early(late.size(), -1e9);
    for (std::size_t k = 0; k < done_.size(); ++k) {
      if (done_[k].flops <= 0) continue;  // missed: nothing began
      late[k] = done_[k].first_s - times_[k].begin_s;
      early[k] = -late[k];
    }
    context_.world.all_reduce(late.data(), late.data(), late.size(), DataType::fp64, ReduceOp::max);
    context_.world.all_reduce(early.data(), early.data(), early.size(), DataType::fp64, ReduceOp::max);
    for (std::size_t k = 0; k < late.size(); ++k)
      if (late[k] > -1e8) skew_.push_back(late[k] + early[k]);
  }

  /// Every result is checked before the next batch, the last ones after the falling edge.
  Done one(int k, const PulseTimes& at) {
    Done done;
    const int ranks = context_.world.size();
    const double share = static_cast<double>(context_.world.rank()) / ranks;
    const double zero = at.begin_s - pulse_.train.begin_s(k);
    wait_until(at.begin_s);
    for (bool checked = true;;) {
      const double rest = pulse_.train.rest_s(k, now_s() - zero, share);
      if (rest > 0 && now_s() + rest < at.end_s) {
        wait_until(now_s() + rest);
        continue;
      }
      if (rest > 0 || now_s() + 0.5 * batch_s_ > at.end_s) {
        if (!checked) product_->inject_and_check();
        break;
      }
      if (!checked) product_->inject_and_check();
      const double begin = now_s();
      if (done.first_s == 0) done.first_s = begin;
      product_->queue(layout_.outputs);
      context_.device.synchronize();
      recorder_.apply_injected_delay(begin, layout_.outputs);
      done.last_s = now_s();
      done.flops += product_->flops() * static_cast<double>(layout_.outputs);
      checked = false;
    }
    return done;
  }

  void report(const EnergyTrace& energy) {
    const auto& train = pulse_.train;
    if (!skew_.empty()) {
      context_.record.parameter("edge_skew_s", median(skew_));
      context_.record.parameter("edge_skew_worst_s", *std::max_element(skew_.begin(), skew_.end()));
    }
    const std::uint64_t wrong = recorder_.hand_over();
    if (!takes_part_) return;
    record_trial(trial_, context_);
    auto& row = context_.record.add_row(context_.device_entity);
    std::vector<PulseTimes> full;
    for (int k = 0; k < train.pulses; ++k) {
      if (!train.full(k)) continue;
      const auto i = static_cast<std::size_t>(k);
      const Done& done = done_[i];
      full.push_back(times_[i]);
      row.t.push_back(context_.since_start(times_[i].begin_s));
      row.block.push_back(3 * (k - train.ramp) / train.full_pulses());
      // A pulse without any work has no rate, and shows as one that was much too late.
      row.values["throughput"].push_back(done.flops > 0 ? done.flops / (done.last_s - done.first_s)
                                                        : results::not_taken);
      row.values["lag"].push_back(done.flops > 0 ? done.first_s - times_[i].begin_s : train.period_s);
    }
    if (std::ranges::none_of(done_, [](const Done& done) { return done.flops > 0; }))
      context_.record.set_state(
          results::CaseState::incomplete,
          context_.entities.rows()[static_cast<std::size_t>(context_.device_entity)].name +
              " came too late for every pulse");
    const PowerSwing swing = power_swing(energy, full);
    row.values["power_high"] = {swing.high_w};
    row.values["power_low"] = {swing.low_w};
    row.values["power_swing"] = {swing.swing_w()};
    row.values["errors"] = {static_cast<double>(wrong)};
    // Of a smaller product there is nothing to compare it with.
    row.integers["digest"] = {n_ == largest_ ? *product_->digest() : results::no_digest};
    context_.tell_arithmetic(row);
    row.integers["size"] = {n_};
    if (std::isnan(swing.swing_w())) context_.record.event("power", why_not(swing), context_.device_entity);
    context_.record.add_time(0, train.pulses * train.period_s, 0);
  }

  std::string why_not(const PowerSwing& swing) const {
    if (std::isnan(swing.resolution_s)) return "the power swing was not measured: no energy counter";
    return fmt::format(
        "the power swing was not measured: the energy counter moves every {:.3g} s, and the shorter phase "
        "takes {:.3g} s",
        swing.resolution_s, pulse_.train.shortest_phase_s());
  }

  Pulse pulse_;
  Context& context_;
  Together together_;
  BurnRecorder recorder_;
  bool takes_part_;
  DevicePower power_;
  std::size_t n_ = 0, largest_ = 0;  ///< of this device, and of all
  workload::ProductLayout layout_;
  std::optional<workload::VerifiedProduct> product_;
  double batch_s_ = 0;  ///< of as many products as there are results
  Trial trial_;
  double zero_root_ = 0;
  std::vector<PulseTimes> times_;
  std::vector<Done> done_;
  std::vector<double> skew_;
};

}  // namespace

void run_pulse(const Case& c, Context& context) {
  // A dozen pulses on cores that have the system's work to do as well say little of their rate.
  auto& rate = context.record.declare(metrics().of("pulse", "throughput"));
  if (!context.device.has_own_memory()) rate.role = results::Role::covariate;
  for (const char* name : {"lag", "power_high", "power_low", "power_swing", "errors"})
    context.record.declare(metrics().of("pulse", name));
  for (const char* name : {"digest", "size"}) context.record.declare_integers(name, {}, {});
  context.declare_arithmetic();
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  context.record.parameter("inputs", fmt::format("{:016x}", context.inputs().key()));
  PulseRun(c, context).run();
}

}  // namespace assay::burn
