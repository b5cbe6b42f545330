// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "run/together.hpp"
#include "suites/gemm/algorithms.hpp"
#include "suites/gemm/check.hpp"
#include "suites/gemm/gemm_job.hpp"

namespace assay::gemm {
namespace {

/// A GEMM that can be timed again and again, every result of which is checked after the clock stopped.
class TimedGemm {
 public:
  TimedGemm(const Job& job, const GemmShape& shape, const Layout& layout, Context& context)
      : job_(job),
        product_(plain_product(job.type, shape)),
        layout_(layout),
        context_(context),
        reference_(layout.inputs),
        written_(layout.outputs, false) {
    context.device.reserve(layout.bytes());
    base_ = context.device.arena().data();
    for (std::size_t i = 0; i < layout.inputs; ++i) {
      const RandomStream random = context.inputs().child("pair" + std::to_string(i));
      context.device.fill_uniform(job.type, a(i), shape.m * shape.k, random.child("a").key());
      context.device.fill_uniform(job.type, b(i), shape.k * shape.n, random.child("b").key());
    }
    for (std::size_t s = 0; s < layout.outputs; ++s) poison(s);
    context.device.synchronize();
  }

  /// FLOP/s of the few that are needed to know how many fit a time.
  double first_rate() {
    constexpr std::uint64_t few = 3;
    repeat(1);
    const double begin = now_s();
    repeat(few);
    return static_cast<double>(few) * product_.flops() / (now_s() - begin);
  }
  double flops() const noexcept { return product_.flops(); }
  /// The clock of the device during each sample, where it tells.
  const std::vector<double>& clocks() const noexcept { return clocks_; }

  Operation operation() {
    clocks_.clear();
    Operation op;
    op.run = [this](std::uint64_t k) { repeat(k); };
    // What warm-up left is checked before the first sample, so that no timed result can be mistaken for it.
    op.sync = [this] { check_written(); };
    op.verify = [this](std::size_t) {
      if (context_.device.measures_clock()) clocks_.push_back(context_.device.clock_hz());
      offer_written();
      check_written();
    };
    return op;
  }

  /// One digest over the results of all input pairs: equal on all equal devices. A series cut short by its
  /// time cap may not have reached every pair; those are computed now, or a slow device would look like a
  /// wrong one.
  std::uint64_t digest() {
    std::uint64_t all = 0;
    for (std::size_t pair = 0; pair < layout_.inputs; ++pair) {
      if (!reference_[pair]) {
        compute(pair, pair);
        context_.device.synchronize();
        reference_[pair] = context_.device.digest(c(pair), layout_.result_bytes);
      }
      all = mix64(all, *reference_[pair]);
    }
    return all;
  }

 private:
  std::byte* a(std::size_t pair) const { return base_ + layout_.a(pair); }
  std::byte* b(std::size_t pair) const { return base_ + layout_.b(pair); }
  std::byte* c(std::size_t slot) const { return base_ + layout_.c(slot); }

  void compute(std::size_t pair, std::size_t slot) {
    context_.device.matmul(job_.type, product_, a(pair), b(pair), c(slot));
  }

  void repeat(std::uint64_t k) {
    context_.device.begin_clock();
    for (std::uint64_t i = 0; i < k; ++i) {
      const std::size_t slot = next_++ % layout_.outputs;
      compute(slot % layout_.inputs, slot);
      written_[slot] = true;
    }
    context_.device.end_clock();
    context_.device.synchronize();
  }

  /// Overwrites a result: a GEMM that afterwards writes nothing, or not all, cannot pass for the one before.
  void poison(std::size_t slot) {
    context_.device.stream(kernels::StreamOp::write, reinterpret_cast<double*>(c(slot)), nullptr, nullptr,
                           layout_.result_bytes / sizeof(double));
  }

  /// Only results that have one to be compared with: without it the first would be taken for the right one.
  void offer_written() {
    for (std::size_t slot = 0; slot < layout_.outputs; ++slot)
      if (written_[slot] && reference_[slot % layout_.inputs])
        context_.offer("gemm", c(slot), product_.m * product_.n, result_size(job_.type, product_.output));
  }

  void check_written() {
    for (std::size_t slot = 0; slot < layout_.outputs; ++slot) {
      if (!written_[slot]) continue;
      written_[slot] = false;
      const std::uint64_t digest = context_.device.digest(c(slot), layout_.result_bytes);
      auto& reference = reference_[slot % layout_.inputs];
      if (!reference) reference = digest;
      if (digest != *reference) report(slot, digest, *reference);
      poison(slot);
    }
    context_.device.synchronize();
  }

  /// Computes the result again in another slot to find the wrong elements.
  void report(std::size_t slot, std::uint64_t digest, std::uint64_t reference) {
    const double t = context_.since_start(now_s());
    results::Miscompare record{"", context_.device_entity, 0, reference, digest, digest, t};
    constexpr int searches = 8;
    if (++reports_ > searches) return context_.record.miscompare(record);
    const std::size_t pair = slot % layout_.inputs;
    const std::size_t scratch = (slot + 1) % layout_.outputs;
    if (written_[scratch]) hold(scratch);
    compute(pair, scratch);
    context_.device.synchronize();
    const std::size_t element = result_size(job_.type, product_.output);
    const WrongElements wrong =
        compare_bits_on_device(context_.device, c(slot), c(scratch), product_.m * product_.n, element);
    const bool repeats = context_.device.digest(c(scratch), layout_.result_bytes) == reference;
    poison(scratch);
    if (!repeats || wrong.count == 0) {
      context_.record.event("gemm-digest",
                            "a result differs from the first one of its inputs and cannot be located: "
                            "computed again it is " +
                                std::string(repeats ? "right" : "different once more"),
                            context_.device_entity);
      return context_.record.miscompare(record);
    }
    for (std::size_t i = 0; i < wrong.first.size(); ++i) {
      const WrongElement& w = wrong.first[i];
      const bool last = i + 1 == wrong.first.size();
      context_.record.miscompare({"", context_.device_entity, w.index, w.expected, w.actual, w.reread, t},
                                 last ? wrong.count - i : 1);
    }
  }

  /// Checks a slot that is about to serve as scratch and was not checked yet.
  void hold(std::size_t slot) {
    written_[slot] = false;
    const std::uint64_t digest = context_.device.digest(c(slot), layout_.result_bytes);
    auto& reference = reference_[slot % layout_.inputs];
    if (!reference) reference = digest;
    if (digest == *reference) return;
    context_.record.miscompare(
        {"", context_.device_entity, 0, *reference, digest, digest, context_.since_start(now_s())});
  }

  Job job_;
  Matmul product_;
  Layout layout_;
  Context& context_;
  std::byte* base_ = nullptr;
  std::vector<std::optional<std::uint64_t>> reference_;  ///< digest of the first C of each input pair
  std::vector<bool> written_;
  std::uint64_t next_ = 0;
  int reports_ = 0;
  std::vector<double> clocks_;
};

/// One GEMM of a host takes at least 100 clock steps from n = 256 up, so k = 1; below, as many as there are result slots, so
/// that each has its own. To start work on a GPU, to read its clock and to learn of its end takes some 10 us, which 5 ms of work hide. A
/// sustained series is cut into at most 1000 samples, and the ranks agree on their length.
SamplingPlan sampling(const Job& job, const Layout& layout, const Case& c, TimedGemm& gemm, Context& context) {
  constexpr double hidden_s = 5e-3;
  SamplingPlan plan = context.sampling(c.seconds);
  const bool host = context.device.stream() == nullptr;
  plan.repetitions = job.n >= 256 ? 1 : layout.outputs;
  if (host && job.sustained_s <= 0) return plan;
  const double single_s = gemm.flops() / gemm.first_rate();
  if (!host) plan.repetitions = static_cast<std::uint64_t>(std::clamp(std::ceil(hidden_s / single_s), 1.0, 1e5));
  if (job.sustained_s <= 0) return plan;
  plan.relative_ci = 0;
  plan.max_samples = 1000;
  const double k = std::ceil(c.seconds / 1000.0 / single_s);
  plan.repetitions = std::max(plan.repetitions, static_cast<std::uint64_t>(std::clamp(k, 1.0, 1e6)));
  return plan;
}

/// A device without a loop of multiply-adds in this type has no peak of its own to be compared with.
bool has_peak(const Job& job, Device& device) {
  return device.stream() == nullptr || job.type == NumType::fp32 || job.type == NumType::fp64;
}

void add_series(TimedGemm& gemm, const SampleSeries& series, double peak, Context& context) {
  auto& row = context.record.add_row(context.device_entity);
  const double flops = gemm.flops() * static_cast<double>(series.repetitions);
  auto& throughput = row.values["throughput"];
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    row.t.push_back(context.since_start(series.start_s[i]));
    throughput.push_back(flops / series.seconds[i]);
  }
  row.block = series.block;
  if (peak > 0) row.values["efficiency"] = {median(throughput) / peak};
  if (context.device.measures_clock()) row.values["clock"] = gemm.clocks();
  row.integers["digest"] = {gemm.digest()};
  row.integers["threads"] = {static_cast<std::uint64_t>(context.device.threads())};
  context.record.parameter("repetitions", series.repetitions);
  context.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
}

}  // namespace

void run_throughput(const Case& c, const Choice* choice, Context& context) {
  const Job job = job_from(c);
  const GemmShape shape = choice != nullptr ? choice->shape : job.shape();
  using results::Better;
  context.record.declare({"throughput", "FLOP/s", Better::higher, true, results::Role::metric, true});
  if (has_peak(job, context.device)) context.record.declare({"efficiency", "1", Better::higher, false, results::Role::covariate, false});
  if (context.device.measures_clock()) context.record.declare({"clock", "Hz", Better::none, false, results::Role::covariate, true});
  context.record.declare_integers("digest", {}, {});
  context.record.declare_integers("threads", {}, {});
  record_identity(context);
  if (choice != nullptr) {
    context.record.parameter("shape", fmt::format("{}x{}x{}", shape.m, shape.n, shape.k));
    context.record.parameter("algorithm", choice->algorithm);
    context.record.parameter("algorithms_tried", choice->candidates);
  }
  // Equal inputs must give equal digests, also when the verdict asks for them a second time.
  context.record.parameter("inputs", fmt::format("{:016x}", context.inputs().key()));

  Together together(context.node);
  std::optional<TimedGemm> gemm;
  SamplingPlan plan;
  const double setup_begin = now_s();
  together.guarded([&] {
    const auto layout =
        make_layout(job.type, shape, c.parameters.value("cache_bytes", std::uint64_t{0}), c.bytes);
    gemm.emplace(job, shape, layout, context);
    plan = sampling(job, layout, c, *gemm, context);
  });
  const double setup_s = now_s() - setup_begin;
  const auto measure = [&](const Operation& op, const SamplingPlan& by) {
    const SampleSeries series = sample(op, by);
    together.guarded([&] {
      const double begin = now_s();
      const double peak = has_peak(job, context.device) ? context.device.fma_peak(job.type, peak_seconds(context.config.level)) : 0;
      context.record.add_time(0, now_s() - begin, 0);
      add_series(*gemm, series, peak, context);
    });
  };
  if (!job.together) {
    context.take_turns(c.turns, [&] { together.guarded([&] { measure(gemm->operation(), plan); }); });
    share_times(context.record, context.node);
  } else if (!together.any(false)) {  // a rank that could not set up would stop the series at once anyway
    measure(together.wrap(gemm->operation()), together.wrap(plan));
  }
  context.record.add_time(setup_s, 0, 0);  // filling the inputs is part of warming up
  together.rethrow();
}

}  // namespace assay::gemm
