// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/stream_data.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "device/memory_ops.hpp"
#include "kernels/digest.hpp"
#include "suites/memory/layout.hpp"

namespace assay::memory {
namespace {

using kernels::StreamOp;

constexpr std::size_t max_records = 1000;
/// Doubles that are filled or digested in one go, about 64 MiB: at a hundredth of the speed of a core some
/// seconds, after which a rank without progress is not yet taken for hung.
constexpr std::size_t most_at_once = 128 * period;

/// Random integers in [-2^49, 2^49): three of them and one more still fit the 53 bits of a double.
std::vector<double> noise(std::uint64_t key) {
  std::vector<double> tile(period);
  for (std::size_t i = 0; i < period; ++i)
    tile[i] = static_cast<double>(static_cast<std::int64_t>(mix64(key, i) >> 14) - (std::int64_t{1} << 49));
  return tile;
}

std::vector<double> triad(const std::vector<double>& b, const std::vector<double>& c) {
  std::vector<double> a(period);
  for (std::size_t i = 0; i < period; ++i) a[i] = b[i] + kernels::stream_scalar * c[i];
  return a;
}

}  // namespace

StreamData::StreamData(Device& device, StreamOp op, std::size_t count, std::uint64_t key, Filling filling)
    : device_(device),
      op_(op),
      count_(count),
      stride_bytes_(array_stride(count, device.stride_bytes())),
      filling_(std::move(filling)) {
  device.reserve(stream_buffers(op) * stride_bytes_);
  const Tile b = noise(mix64(key, 1)), c = noise(mix64(key, 2));
  switch (op) {
    case StreamOp::read:
      expected_ = {b};
      fill(array(0), b);
      break;
    case StreamOp::write:
      expected_ = {Tile(period, kernels::stream_value)};
      fill(array(1), b);
      break;
    case StreamOp::copy: expected_ = {b, c}; break;
    case StreamOp::triad: expected_ = {triad(b, c), triad(c, b)}; break;
  }
  if (stream_buffers(op) == 3) {
    fill(array(1), b);
    settle();
    fill(array(2), c);
  }
  digest_expected();
  device.synchronize();
}

void StreamData::cut(std::size_t count) {
  if (count >= count_) return;
  count_ = count;
  digest_expected();
}

void StreamData::digest_expected() {
  digests_.clear();
  for (const Tile& tile : expected_) digests_.push_back(periodic_digest(tile, count_));
}

/// Digest of `count` doubles of a periodic array, from one period held in the cache of this core.
std::uint64_t StreamData::periodic_digest(const Tile& tile, std::size_t count) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; i += period) {
    if (i > 0 && i % most_at_once == 0) part_done(now_s());
    sum += kernels::host::digest(tile.data(), std::min(period, count - i) * sizeof(double), i);
  }
  return sum;
}

void StreamData::part_done(double begin_s) const {
  if (filling_.part_done) filling_.part_done(begin_s);
}

double* StreamData::array(std::size_t i) const {
  return reinterpret_cast<double*>(device_.arena().data() + i * stride_bytes_);
}

/// One period from the host, the rest by copies on the device that double what is there, up to a part each. A
/// device that is far too slow gets no further than its share: each pass over the arrays takes about as long.
void StreamData::fill(double* array, const Tile& tile) {
  constexpr std::size_t room = rotations * period;
  std::size_t total = count_ + room;
  device_.copy_to_device(array, tile.data(), period * sizeof(double));
  const double fill_begin = now_s();
  for (std::size_t done = period; done < total;) {
    const double begin = now_s();
    const std::size_t n = std::min({done, total - done, most_at_once});
    device_.stream(StreamOp::copy, array + done, array, nullptr, n);
    device_.synchronize();
    part_done(begin);
    done += n;
    if (!filled_ && done > room && now_s() - fill_begin > filling_.share_s) total = done;
  }
  count_ = total - room;
  filled_ = true;
}

/// An H200 copies 4.16 or 4.26 TB/s, and has a triad of 4.16 or 4.39, by what ran before: the first after
/// sweeps that verify or a test of the L2 cache, the second after a large copy within the GPU. Copies,
/// triads, digests and products change nothing. Why is not known; the L2 cache may keep lines of the others.
void StreamData::settle() {
  constexpr std::size_t most = std::size_t{1} << 30;
  MemoryOps* ops = device_.memory_ops();
  if (ops == nullptr) return;
  device_.synchronize();
  ops->start_copy(CopyWay::inside, CopyBy::engine, array(2), array(1),
                  std::min(most, count_ * sizeof(double)));
  ops->finish_copies();
}

void StreamData::run(std::uint64_t repetitions) {
  for (std::uint64_t i = 0; i < repetitions; ++i) queue();
  device_.synchronize();
}

void StreamData::queue() {
  const std::size_t offset = repetition_ % rotations * period;
  const bool swapped = repetition_ % 2 == 1;
  ++repetition_;
  double* a = array(0) + offset;
  if (op_ == StreamOp::read || op_ == StreamOp::write) {
    device_.stream(op_, a, nullptr, nullptr, count_);
  } else {
    const double* b = array(swapped ? 2 : 1) + offset;
    const double* c = array(swapped ? 1 : 2) + offset;
    device_.stream(op_, a, b, op_ == StreamOp::triad ? c : nullptr, count_);
  }
}

void StreamData::prepare() {
  if (const std::uint64_t place = repetition_ % rotations; place + passes_ > rotations)
    repetition_ += rotations - place;
  first_ = repetition_;
  if (op_ != StreamOp::write) return;
  const std::size_t offset = repetition_ % rotations * period;
  device_.stream(StreamOp::copy, array(0) + offset, array(1) + offset, nullptr, count_);
  device_.synchronize();
}

std::span<double> StreamData::result() const {
  if (repetition_ == 0) return {};
  return {array(0) + (repetition_ - 1) % rotations * period, count_};
}

StreamData::Check StreamData::check() {
  if (repetition_ == 0) return {};
  const std::uint64_t last = repetition_ - 1;
  const auto compared = [&](std::uint64_t repetition, std::size_t count) -> Check {
    const std::size_t variant = repetition % expected_.size();
    const double* from = array(0) + repetition % rotations * period;
    const std::uint64_t digest =
        count == count_ ? digests_[variant] : periodic_digest(expected_[variant], count);
    if (device_.digest(from, count * sizeof(double)) == digest) return {};
    return search(from, count, expected_[variant]);
  };
  // One that begins at a lower place than the one before it leaves nothing of that.
  if (expected_.size() > 1)
    for (std::uint64_t i = std::max(first_, last - last % rotations); i < last; ++i)
      if (Check early = compared(i, std::min(period, count_)); early.count > 0) return early;
  return compared(last, count_);
}

StreamData::Check StreamData::search(const double* from, std::size_t count, const Tile& expected) const {
  Check result;
  Tile got(period);
  const auto* base = reinterpret_cast<const double*>(device_.arena().data());
  for (std::size_t i = 0; i < count; i += period) {
    const std::size_t n = std::min(period, count - i);
    device_.copy_to_host(got.data(), from + i, n * sizeof(double));
    if (std::memcmp(got.data(), expected.data(), n * sizeof(double)) == 0) continue;
    for (std::size_t j = 0; j < n; ++j) {
      const auto want = std::bit_cast<std::uint64_t>(expected[j]),
                 have = std::bit_cast<std::uint64_t>(got[j]);
      if (want == have) continue;
      ++result.count;
      if (result.first.size() == max_records) continue;
      std::uint64_t again = 0;
      device_.copy_to_host(&again, from + i + j, sizeof(again));
      result.first.push_back(
          {static_cast<std::uint64_t>(from + i + j - base) * sizeof(double), want, have, again, -1});
    }
  }
  if (result.count == 0) {
    result.count = 1;
    result.located = false;
  }
  return result;
}

}  // namespace assay::memory
