// SPDX-License-Identifier: Apache-2.0
#include "suites/burn/burner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "kernels/pattern.hpp"

namespace assay::burn {

void BurnRecorder::injection_point(std::string_view target, void* data, std::size_t count,
                                   std::size_t element_bytes) {
  if (!faulty()) return;
  const std::scoped_lock lock(mutex_);
  context_.injection_point(target, data, count, element_bytes);
}

double BurnRecorder::apply_injected_delay(double begin_s, std::uint64_t repetitions) {
  if (!faulty()) return 1;
  const std::scoped_lock lock(mutex_);
  return context_.apply_injected_delay(begin_s, repetitions);
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
                             std::byte* base, const RandomStream& inputs, BurnRecorder& recorder)
    : device_(std::move(device)),
      type_(type),
      n_(n),
      layout_(layout),
      algorithm_(algorithm),
      base_(base),
      inputs_(inputs),
      recorder_(recorder) {}

void ComputeBurner::prepare() {
  // One that cannot is another GPU than rank 0's: it computes as its own library chooses.
  if (algorithm_ != nullptr && !algorithm_->name.starts_with("own:"))
    device_->set_algorithm(type_, plain_product(type_, {n_, n_, n_}), *algorithm_);
  product_.emplace(*device_, type_, GemmShape{n_, n_, n_}, layout_, base_, inputs_, hooks_at(recorder_));
  product_->digest();
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
  product_->queue(layout_.outputs);
  device_->synchronize();
  recorder_.apply_injected_delay(begin, layout_.outputs);
  product_->inject_and_check();
  return static_cast<double>(layout_.outputs) * product_->flops();
}

namespace {

/// Words of a chunk: a round of some ten milliseconds, from a slow core to a fast GPU.
std::size_t chunk_words(const Device& device) {
  return (device.has_own_memory() ? std::size_t{1} << 30 : std::size_t{32} << 20) / sizeof(std::uint64_t);
}

}  // namespace

MemoryBurner::MemoryBurner(std::unique_ptr<Device> device, std::uint64_t* words, std::size_t count,
                           const RandomStream& random, BurnRecorder& recorder)
    : device_(std::move(device)),
      words_(words),
      count_(count),
      chunks_(std::max<std::size_t>(1, count / chunk_words(*device_))),
      random_(random),
      recorder_(recorder),
      generation_(chunks_, 0) {}

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
    recorder_.wrong({"", recorder_.entity(), (begin + e.index) * sizeof(std::uint64_t), e.expected, e.actual,
                     e.reread, t, e.sm, e.warp, e.lane},
                    i + 1 == records.size() ? log.count() - i : 1);
  }
  if (log.count() > 0 && told_++ < 4)
    recorder_.event(
        "memory-fault",
        fmt::format("burn: {} wrong words, the first at byte {}", log.count(),
                    records.empty() ? 0 : (begin + records.front().index) * sizeof(std::uint64_t)));
  return static_cast<double>(words * sweep.bytes_per_word());
}

void MemoryBurner::prepare() {
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
