// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "kernels/pattern.hpp"
#include "measure/sizing.hpp"

namespace assay::burn {

void BurnRecorder::injection_point(std::string_view target, void* data, std::size_t count,
                                   std::size_t element_bytes) {
  if (!faulty()) return;
  const std::scoped_lock lock(mutex_);
  context_.injection_point(target, data, count, element_bytes);
}

double BurnRecorder::apply_injected_delay(double begin_s, std::uint64_t repetitions, bool warmup) {
  if (!faulty()) return 1;
  const std::scoped_lock lock(mutex_);
  return context_.apply_injected_delay(begin_s, repetitions, warmup);
}

void BurnRecorder::wrong(const results::Miscompare& record, std::uint64_t count) {
  constexpr std::size_t most = 1000;
  const std::scoped_lock lock(mutex_);
  wrong_count_ += count;
  if (wrong_.size() < most)
    wrong_.push_back({record, count});
  else
    wrong_.back().count += count;
}

void BurnRecorder::event(std::string kind, std::string text) {
  constexpr std::size_t most = 16;
  const std::scoped_lock lock(mutex_);
  if (events_.size() < most) events_.emplace_back(std::move(kind), std::move(text));
}

std::uint64_t BurnRecorder::hand_over() {
  const std::scoped_lock lock(mutex_);
  for (const Wrong& wrong : wrong_) context_.record.miscompare(wrong.record, wrong.count);
  for (const auto& [kind, text] : events_) context_.record.event(kind, text, entity_);
  wrong_.clear();
  events_.clear();
  return wrong_count_;
}

void Trial::add(const Trial& other) {
  injected += other.injected;
  caught += other.caught;
  located += other.located;
  counted += other.counted;
}

void record_trial(const Trial& trial, Context& context) {
  context.record.selftest(
      {"burn", trial.injected, trial.caught, trial.located, trial.counted, context.device_entity});
}

workload::VerifiedProduct::Hooks hooks_at(BurnRecorder& recorder) {
  return {[&recorder](void* c, std::size_t count, std::size_t bytes) {
            recorder.injection_point("gemm", c, count, bytes);
          },
          [&recorder](const workload::WrongElement& w, std::uint64_t count) {
            recorder.wrong({"", recorder.entity(), w.index, w.expected, w.actual, w.reread,
                            recorder.since_start(now_s())},
                           count);
          },
          [&recorder](const char* text) { recorder.event("gemm-digest", text); }};
}

ComputeBurner::ComputeBurner(std::unique_ptr<Device> device, NumType type, std::size_t n,
                             const workload::ProductLayout& layout, const GemmAlgorithm* algorithm,
                             std::byte* base, const RandomStream& inputs, double round_s,
                             BurnRecorder& recorder)
    : device_(std::move(device)),
      type_(type),
      n_(n),
      planned_n_(n),
      layout_(layout),
      algorithm_(algorithm),
      base_(base),
      inputs_(inputs),
      round_s_(round_s),
      recorder_(recorder) {}

void ComputeBurner::make() {
  product_.emplace(*device_, type_, GemmShape{n_, n_, n_}, layout_, base_, inputs_, hooks_at(recorder_));
}

double ComputeBurner::single_s() {
  const double begin = now_s();
  product_->queue(1);
  device_->synchronize();
  recorder_.apply_injected_delay(begin, 1, true);
  return now_s() - begin;
}

/// A product of a GPU takes a fraction of a second at a hundredth of its speed.
void ComputeBurner::fit() {
  if (device_->has_streams() || n_ < 256) return make();
  const workload::ProductLayout planned = layout_;
  const auto at = [&](std::size_t n) {
    n_ = n;
    layout_ = n == planned_n_ ? planned : workload::make_product_layout(type_, {n, n, n}, 0, planned.bytes());
    make();
  };
  at(planned_n_ / size_probe_divisor);
  // The first product starts the library's threads, and the core may have been away.
  std::size_t fitted = n_;
  double least_s = std::numeric_limits<double>::infinity();
  for (int tries = 0; tries < 3 && fitted != planned_n_; ++tries) {
    least_s = std::min(least_s, single_s());
    fitted = fitted_size(planned_n_, least_s, round_s_);
  }
  if (fitted != planned_n_)
    recorder_.event("burn-cut-short", fmt::format("n={} instead of {}: a product of n={} takes {:.3g} s",
                                                  fitted, planned_n_, n_, least_s));
  at(fitted);
}

void ComputeBurner::prepare() {
  // One that cannot is another GPU than rank 0's: it computes as its own library chooses.
  if (algorithm_ != nullptr && !algorithm_->name.starts_with("own:"))
    device_->set_algorithm(type_, plain_product(type_, {n_, n_, n_}), *algorithm_);
  fit();
  product_->digest();
  queued_ = fitted_count(layout_.outputs, single_s(), size_patience * round_s_);
  product_->check();
}

Trial try_product(workload::VerifiedProduct& product, Device& device, const RandomStream& random,
                  workload::VerifiedProduct::Hooks usual) {
  Trial trial;
  std::uint64_t index = 0, bits = 0;
  product.set_hooks({[&](void* c, std::size_t count, std::size_t element_bytes) {
                       if (trial.injected++ > 0) return;
                       index = random.below(0, count);
                       flip_bit(device, c, index, element_bytes,
                                static_cast<unsigned>(random.below(1, 8 * element_bytes)));
                     },
                     [&](const workload::WrongElement& wrong, std::uint64_t count) {
                       bits += count;
                       if (wrong.index == index) trial.located = 1;
                     },
                     [](const char*) {}});
  product.queue(1);
  device.synchronize();
  product.inject_and_check();
  product.set_hooks(std::move(usual));
  trial.caught = bits > 0 ? 1 : 0;
  trial.counted = static_cast<std::int64_t>(bits);
  return trial;
}

Trial ComputeBurner::trial() {
  return try_product(*product_, *device_, inputs_.child("trial"), hooks_at(recorder_));
}

double ComputeBurner::round() {
  const double begin = now_s();
  product_->queue(queued_);
  device_->synchronize();
  recorder_.apply_injected_delay(begin, queued_);
  product_->inject_and_check();
  return static_cast<double>(queued_) * product_->flops();
}

namespace {

/// Words of a chunk: a round of some ten milliseconds, from a usual core to a fast GPU.
std::size_t chunk_words(const Device& device) {
  return (device.has_own_memory() ? std::size_t{1} << 30 : std::size_t{32} << 20) / sizeof(std::uint64_t);
}

/// Of the wrong words of a chunk that begins at this word of the region.
std::string fault_text(std::uint64_t count, const std::vector<kernels::ErrorRecord>& records,
                       std::size_t begin) {
  std::string text = fmt::format("burn: {} wrong words", count);
  if (records.empty()) return text;
  const kernels::ErrorRecord& first = records.front();
  text += fmt::format(", the first at byte {}", (begin + first.index) * sizeof(std::uint64_t));
  if (first.sm >= 0) text += fmt::format(", read by SM {} warp {} lane {}", first.sm, first.warp, first.lane);
  return text + (first.cached ? kernels::cached_words : "");
}

}  // namespace

MemoryBurner::MemoryBurner(std::unique_ptr<Device> device, std::uint64_t* words, std::size_t count,
                           const RandomStream& random, double round_s, double fill_s, BurnRecorder& recorder)
    : device_(std::move(device)),
      words_(words),
      count_(count),
      random_(random),
      round_s_(round_s),
      fill_s_(fill_s),
      recorder_(recorder) {}

/// Less of the region, and smaller chunks, where it cannot be written and read in time.
void MemoryBurner::fit() {
  constexpr std::uint64_t most = std::uint64_t{4} << 20;
  const std::uint64_t planned = bytes(), part = std::min(planned, most);
  double rate = 0;
  for (int tries = 0; tries < 2; ++tries) {  // the second, since the core may have been away
    kernels::Sweep write;
    write.write = true;
    write.next = data(0);
    kernels::ErrorLog log;
    const double begin = now_s();
    device_->sweep(write, words_, part / sizeof(std::uint64_t), log);
    device_->synchronize();
    recorder_.apply_injected_delay(begin, 1, true);
    rate = std::max(rate, static_cast<double>(part) / (now_s() - begin));
    if (fitted_region(planned, rate, 1, fill_s_) == planned) break;
  }
  count_ = fitted_region(planned, rate, 1, fill_s_) / sizeof(std::uint64_t);
  const std::uint64_t chunk =
      fitted_region(chunk_words(*device_) * sizeof(std::uint64_t), rate, 2, size_patience * round_s_);
  chunks_ = std::max<std::size_t>(1, bytes() / chunk);
  generation_.assign(chunks_, 0);
  if (bytes() < planned)
    recorder_.event("burn-cut-short", fmt::format("{} of {} MiB under test, only {:.3g} B/s measured",
                                                  bytes() >> 20, planned >> 20, rate));
}

/// At multiples of 2 MiB, where threads of a host own memory by turns.
std::size_t MemoryBurner::chunk_begin(std::size_t chunk) const noexcept {
  constexpr std::size_t step = (std::size_t{2} << 20) / sizeof(std::uint64_t);
  return chunk == chunks_ ? count_ : count_ / chunks_ * chunk / step * step;
}

kernels::Data MemoryBurner::data(std::uint64_t generation) const noexcept {
  return {kernels::Background::random, random_.bits(generation), 0, false};
}

double MemoryBurner::sweep(std::size_t chunk, bool verify, bool write) {
  const std::size_t begin = chunk_begin(chunk), words = chunk_begin(chunk + 1) - begin;
  kernels::Sweep sweep;
  sweep.verify = verify;
  sweep.write = write;
  sweep.first = begin;
  sweep.expected = data(generation_[chunk]);
  sweep.next = data(generation_[chunk] + 1);
  if (verify) recorder_.injection_point("memory", words_ + begin, words, sizeof(std::uint64_t));
  kernels::ErrorLog log;
  device_->sweep(sweep, words_ + begin, words, log);
  device_->synchronize();
  if (write) ++generation_[chunk];
  const auto records = log.records();
  const double t = recorder_.since_start(now_s());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const kernels::ErrorRecord& e = records[i];
    // Without the multiprocessor that read it: each index of this case would count as a place of its own, and
    // neighbours of one row of the memory as the work of one multiprocessor (verdict, "Wrong values").
    recorder_.wrong({"", recorder_.entity(), begin + e.index, e.expected, e.actual, e.reread, t},
                    i + 1 == records.size() ? log.count() - i : 1);
  }
  if (log.count() > 0 && told_++ < 4)
    recorder_.event("memory-fault", fault_text(log.count(), records, begin));
  return static_cast<double>(words * sweep.bytes_per_word());
}

void MemoryBurner::prepare() {
  fit();
  for (std::size_t chunk = 0; chunk < chunks_; ++chunk) sweep(chunk, false, true);
}

Trial MemoryBurner::trial() {
  const std::size_t words = std::min<std::size_t>(chunk_begin(1), 64 * 1024);
  const RandomStream random = random_.child("trial");
  const std::size_t index = random.below(0, words);
  const auto bit = static_cast<unsigned>(random.below(1, 64));
  flip_bit(*device_, words_, index, sizeof(std::uint64_t), bit);
  kernels::Sweep verify;
  verify.verify = true;
  verify.expected = data(generation_[0]);
  kernels::ErrorLog log;
  device_->sweep(verify, words_, words, log);
  device_->synchronize();
  flip_bit(*device_, words_, index, sizeof(std::uint64_t), bit);
  device_->synchronize();
  const auto records = log.records();
  const bool located =
      std::any_of(records.begin(), records.end(), [&](const auto& r) { return r.index == index; });
  return {1, log.count() > 0 ? 1 : 0, located ? 1 : 0, static_cast<std::int64_t>(log.count())};
}

double MemoryBurner::round() { return sweep(std::exchange(next_, (next_ + 1) % chunks_), true, true); }

void MemoryBurner::finish() {
  for (std::size_t chunk = 0; chunk < chunks_; ++chunk) sweep(chunk, true, false);
}

}  // namespace assay::burn
