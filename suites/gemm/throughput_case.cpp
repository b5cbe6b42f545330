// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "measure/sizing.hpp"
#include "measure/statistics.hpp"
#include "suite/device_power.hpp"
#include "suite/gpu_bound.hpp"
#include "suite/together.hpp"
#include "suites/gemm/algorithms.hpp"
#include "suites/gemm/gemm_metrics.hpp"
#include "suites/gemm/gemm_work.hpp"

namespace assay::gemm {
namespace {

/// A product that can be timed again and again, every result of which is checked after the clock stopped.
class TimedGemm {
 public:
  TimedGemm(const GemmWork& work, const GemmShape& shape, const workload::ProductLayout& layout,
            Context& context)
      : context_(context),
        check_all_(context.device.has_streams() || work.sustained_s > 0),
        results_(layout.outputs),
        product_(context.device, work.type, shape, layout, reserved(layout, context), context.inputs(),
                 hooks()) {}

  /// FLOP/s of the few that are needed to know how many fit a time: on a host of the first alone where that
  /// is long. The first one of a GPU loads the kernel too, which can take longer than the product.
  double first_rate() {
    constexpr std::uint64_t few = 3;
    const double first_s = single_s();
    if (!context_.device.has_streams() && first_s >= long_product_s) return product_.flops() / first_s;
    const double begin = now_s();
    repeat(few);
    context_.count_batch();
    return static_cast<double>(few) * product_.flops() / (now_s() - begin);
  }
  /// Of one product, with the delay of an injected fault.
  double single_s() {
    const double begin = now_s();
    repeat(1);
    context_.apply_injected_delay(begin, 1, true);
    context_.count_batch();
    return now_s() - begin;
  }
  double flops() const noexcept { return product_.flops(); }
  /// Of all inputs, unless those that the series did not reach take longer than `most_s` at `product_s` each.
  std::uint64_t digest(double most_s, double product_s) {
    const double end_s = now_s() + most_s;
    const auto all = product_.digest([&] {
      context_.count_batch();
      return now_s() + product_s < end_s;
    });
    if (!all)
      context_.record.event("gemm-cut-short", "no digest: time ran out before all input sets were used",
                            context_.device_entity);
    return all.value_or(results::no_digest);
  }
  /// The clock of the device during each sample, where it tells.
  const std::vector<double>& clocks() const noexcept { return clocks_; }

  Operation operation() {
    clocks_.clear();
    Operation op;
    op.run = [this](std::uint64_t k) { clocked(k); };
    if (context_.device.measures_clock()) op.timed_elsewhere = [this] { return clocked_s_; };
    // What warm-up left is checked before the first sample, so that no timed result can be mistaken for it.
    op.sync = [this] { product_.check(); };
    op.verify = [this](std::size_t) {
      if (context_.device.measures_clock()) clocks_.push_back(context_.device.clock_hz());
      product_.inject_and_check();
    };
    return op;
  }

 private:
  static std::byte* reserved(const workload::ProductLayout& layout, Context& context) {
    context.device.reserve(layout.bytes());
    return context.device.arena().data();
  }

  workload::VerifiedProduct::Hooks hooks() {
    return {[this](void* c, std::size_t count, std::size_t bytes) {
              context_.injection_point("gemm", c, count, bytes);
            },
            [this](const workload::WrongElement& w, std::uint64_t count) {
              context_.record.miscompare({"", context_.device_entity, w.index, w.expected, w.actual, w.reread,
                                          context_.since_start(now_s())},
                                         count);
            },
            [this](const char* text) { context_.record.event("gemm-digest", text, context_.device_entity); }};
  }

  /// The clock is read outside of what is timed.
  void clocked(std::uint64_t k) {
    context_.device.begin_clock();
    context_.device.synchronize();
    const double begin = now_s();
    repeat(k);
    clocked_s_ = now_s() - begin;
    context_.device.end_clock();
  }

  void repeat(std::uint64_t k) {
    for (; check_all_ && k > results_; k -= results_) {
      product_.queue(results_);
      product_.check();
    }
    product_.queue(k);
    context_.device.synchronize();
  }

  Context& context_;
  bool check_all_;         ///< every result, also where more follow than there is room for
  std::uint64_t results_;  ///< that there is room for
  workload::VerifiedProduct product_;
  std::vector<double> clocks_;
  double clocked_s_ = 0;  ///< of the last batch with readings of the clock
};

/// What a product may take, see fitted_size: a case with one product ends before it is late, which is at four
/// times its time. A sustained series takes another one to learn the rate.
double product_share_s(const GemmWork& work, const Case& c) {
  return (work.sustained_s > 0 ? 1.5 : 3.0) / size_patience * c.seconds;
}

/// The shape that a device as slow as a probe shows gets through in its share of the time. Tuned shapes are
/// of GPUs, of which one product takes a fraction of a second at a hundredth of their speed.
GemmShape fitted_shape(const GemmWork& work, const Case& c, Context& context) {
  const std::size_t n = work.n, small = n / size_probe_divisor;
  if (context.device.has_streams() || n < 256) return work.shape();
  TimedGemm probe(work, {small, small, small},
                  workload::make_product_layout(work.type, {small, small, small}, 0, c.bytes), context);
  std::size_t fitted = n;
  // The first product starts the library's threads.
  double least_s = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < 3; ++tries) {
    least_s = std::min(least_s, probe.single_s());
    fitted = fitted_size(n, least_s, product_share_s(work, c));
    if (fitted == n) return work.shape();
  }
  context.record.event(
      "gemm-cut-short",
      fmt::format("n={} instead of {}: a product of n={} takes {:.3g} s", fitted, n, small, least_s),
      context.device_entity);
  return {fitted, fitted, fitted};
}

/// One GEMM of a host takes at least 100 clock steps from n = 256 up, so k = 1; below, and on a GPU, at most
/// as many as there are result slots, so that each has its own. A sustained series is cut into at most 1000
/// samples, which hold the checks of all results but the last, and the ranks agree on their length.
SamplingPlan sampling(const GemmWork& work, const workload::ProductLayout& layout, const Case& c,
                      TimedGemm& gemm, Context& context) {
  SamplingPlan plan = context.sampling(c.seconds);
  const bool host = !context.device.has_streams();
  plan.repetitions = work.n >= 256 ? 1 : layout.outputs;
  if (host && work.sustained_s <= 0) return plan;
  const double single_s = gemm.flops() / gemm.first_rate();
  if (!host)
    plan.repetitions = static_cast<std::uint64_t>(
        std::clamp(std::ceil(hidden_s / single_s), 1.0, static_cast<double>(layout.outputs)));
  if (work.sustained_s <= 0) return plan;
  plan.relative_ci = 0;
  plan.max_samples = 1000;
  const double k = std::ceil(c.seconds / 1000.0 / single_s);
  plan.repetitions = std::max(plan.repetitions, static_cast<std::uint64_t>(std::clamp(k, 1.0, 1e6)));
  return plan;
}

/// A device without a loop of multiply-adds in this type has no peak of its own to be compared with.
bool has_peak(const GemmWork& work, Device& device) {
  return !device.has_streams() || work.type == NumType::fp32 || work.type == NumType::fp64;
}

/// What a series multiplied, and what it is compared with.
struct Product {
  std::size_t size;  ///< columns of C
  bool whole;        ///< as many as were planned
  double peak;       ///< of this device, FLOP/s; 0: none
  GpuBound bound;
  double digest_s;  ///< what inputs that the series did not reach may take
};

void add_series(TimedGemm& gemm, const SampleSeries& series, const Product& product, Context& context) {
  auto& row = context.record.add_row(context.device_entity);
  const double flops = gemm.flops() * static_cast<double>(series.repetitions);
  auto& throughput = row.values["throughput"];
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    row.t.push_back(context.since_start(series.start_s[i]));
    throughput.push_back(flops / series.seconds[i]);
  }
  row.block = series.block;
  if (product.peak > 0) row.values["efficiency"] = {median(throughput) / product.peak};
  if (context.device.has_streams()) add_bound_share(row, "throughput", product.bound);
  if (context.device.measures_clock()) row.values["clock"] = gemm.clocks();
  // Of a smaller product there is nothing to compare it with.
  const double product_s = median(series.seconds) / static_cast<double>(series.repetitions);
  row.integers["digest"] = {product.whole ? gemm.digest(product.digest_s, product_s) : results::no_digest};
  row.integers["size"] = {product.size};
  context.tell_arithmetic(row);
  row.integers["repetitions"] = {series.repetitions};
  context.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
}

/// What a GPU did per clock and per watt, over the whole series and the checks within it.
void add_economy(const SampleSeries& series, const TimedGemm& gemm, const EnergyTrace& energy,
                 Context& context) {
  if (context.record.rows_.empty() || series.seconds.empty()) return;
  auto& values = context.record.rows_.back().values;
  std::vector<double> per_clock;
  for (std::size_t i = 0; i < series.seconds.size(); ++i)
    per_clock.push_back(values["throughput"][i] / gemm.clocks()[i]);
  const double watts =
      mean_power_w(energy, series.start_s.front(), series.start_s.back() + series.seconds.back());
  values["per_clock"] = {median(per_clock)};
  values["power"] = {watts};
  values["per_watt"] = {median(values["throughput"]) / watts};
}

/// Of products of a GPU; unknown on hosts.
GpuBound bound_of(const GemmWork& work, const Context& context) {
  return math_bound(own_gpu(context), to_string(work.type));
}

/// Products smaller than this do not fill a GPU.
constexpr std::size_t bounded_n = 4096;

void declare(const GemmWork& work, Context& context) {
  CaseRecord& record = context.record;
  auto& throughput = record.declare(metrics().of("product", "throughput"));
  if (context.device.has_streams()) {
    if (work.n >= bounded_n) throughput.judging->floor = results::Floor::gpu_bound;
    declare_bound(metrics().of("product", "bound_share"), bound_of(work, context), context.record);
  }
  if (has_peak(work, context.device)) record.declare(metrics().of("product", "efficiency"));
  if (context.device.measures_clock())
    for (const char* name : {"clock", "per_clock", "power", "per_watt"})
      record.declare(metrics().of("product", name));
  for (const char* name : {"digest", "size", "repetitions"}) record.declare_integers(name, {}, {});
  context.declare_arithmetic();
}

}  // namespace

void run_throughput(const Case& c, const Choice* choice, Context& context) {
  if (choice == nullptr && c.parameters.contains("search"))  // on all ranks alike
    return context.record.set_state(results::CaseState::skip,
                                    "no shape to multiply: the search found none in the time for it");
  const GemmWork work = work_from(c);
  const GemmShape planned = choice != nullptr ? choice->shape : work.shape();
  GemmShape shape = planned;
  declare(work, context);
  record_identity(context);
  if (choice != nullptr) {
    context.record.parameter("shape", fmt::format("{}x{}x{}", shape.m, shape.n, shape.k));
    context.record.parameter("algorithm", choice->algorithm);
    context.record.parameter("algorithms_tried", choice->candidates);
  }
  // Equal inputs must give equal digests, also when the verdict asks for them a second time.
  context.record.parameter("inputs", fmt::format("{:016x}", context.inputs().key()));

  Together together(context.node);
  std::optional<DevicePower> power;
  if (context.device.measures_clock()) power.emplace(context, 0.1);
  SampleSeries series;
  std::optional<TimedGemm> gemm;
  SamplingPlan plan;
  const double setup_begin = now_s();
  together.guarded([&] {
    if (choice == nullptr) shape = fitted_shape(work, c, context);
    workload::ProductLayout layout = workload::make_product_layout(
        work.type, shape, c.parameters.value("cache_bytes", std::uint64_t{0}), c.bytes);
    if (c.parameters.contains("batch_flop"))
      layout = workload::with_batch(layout, c.parameters.at("batch_flop"), shape, c.bytes);
    gemm.emplace(work, shape, layout, context);
    plan = sampling(work, layout, c, *gemm, context);
  });
  const double setup_s = now_s() - setup_begin;
  const auto measure = [&](const Operation& op, const SamplingPlan& by) {
    series = sample(op, by);
    together.guarded([&] {
      const double begin = now_s();
      const double peak = has_peak(work, context.device)
                              ? context.device.fma_peak(work.type, peak_seconds(context.config.level))
                              : 0;
      context.record.add_time(0, now_s() - begin, 0);
      if (peak <= 0 && has_peak(work, context.device)) record_wrong_arithmetic(context);
      add_series(*gemm, series,
                 {shape.n, shape.n == planned.n, peak, bound_of(work, context), std::max(1.0, c.seconds)},
                 context);
    });
  };
  if (!work.together) {
    context.take_turns(c.turns, [&] { together.guarded([&] { measure(gemm->operation(), plan); }); });
    share_times(context.record, context.node);
  } else if (!together.any(false)) {  // a rank that could not set up would stop the series at once anyway
    measure(together.wrap(gemm->operation()), together.wrap(plan));
  }
  if (power) {
    const EnergyTrace energy = power->finish();
    together.guarded([&] { add_economy(series, *gemm, energy, context); });
  }
  context.record.add_time(setup_s, 0, 0);  // filling the inputs is part of warming up
  together.rethrow();
}

}  // namespace assay::gemm
