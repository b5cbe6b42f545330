// SPDX-License-Identifier: Apache-2.0
#include "kernels/pattern.hpp"

#include <algorithm>

#include "kernels/host/pattern_source.hpp"

#define ASSAY_BODY "kernels/host/pattern_body.inc"
#include "kernels/host/foreach_isa.inc"

namespace assay::kernels::host {
namespace {

/// Reads a word again from memory rather than from a cache.
std::uint64_t reread(const std::uint64_t* p) noexcept {
#if defined(__x86_64__)
  _mm_mfence();
  _mm_clflush(p);
  _mm_mfence();
#elif defined(__aarch64__)
  __asm__ volatile("dc civac, %0\n\tdsb sy" ::"r"(p) : "memory");
#endif
  return *static_cast<const volatile std::uint64_t*>(p);
}

/// What one call works on: words[begin, end) of a region, whose word i is expected to follow the closed form
/// at i - shift.
struct Span {
  std::uint64_t* words;
  std::size_t begin, end, shift;
};

class Sweeper {
 public:
  Sweeper(const Sweep& sweep, int thread, ErrorLog& log) noexcept
      : sweep_(sweep),
        has_powers_((sweep.verify && sweep.expected.kind == Background::powers) ||
                    (sweep.write && sweep.next.kind == Background::powers)),
        thread_(thread),
        log_(log) {}

  void run(const Span& span) noexcept;
  static void move(std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t half) noexcept;

 private:
  void block(const Span& span, std::size_t at, std::size_t count, std::size_t position) noexcept;
  void slow(const Span& span, std::size_t begin, std::size_t end) noexcept;
  void powers(const Span& span) const noexcept;
  bool writes_all() const noexcept { return sweep_.write && !sweep_.powers_only; }
  std::uint64_t verify_words(const Span& span, std::size_t begin, std::size_t end) noexcept;
  void report(const Span& span, std::size_t index, std::uint64_t expected, std::uint64_t actual) noexcept;

  const Sweep& sweep_;
  bool has_powers_;
  int thread_;
  ErrorLog& log_;
  Source expected_, next_;
};

void Sweeper::report(const Span& span, std::size_t index, std::uint64_t expected,
                     std::uint64_t actual) noexcept {
  log_.add_bits(expected, actual);
  if (log_.full()) return log_.add_count(1);
  log_.add({index, expected, actual, reread(span.words + index), thread_});
}

/// Compares word by word and returns how many are wrong.
std::uint64_t Sweeper::verify_words(const Span& span, std::size_t begin, std::size_t end) noexcept {
  std::uint64_t wrong = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t actual = *static_cast<const volatile std::uint64_t*>(span.words + i);
    const std::uint64_t expected = data_word(sweep_.expected, i - span.shift);
    if (actual == expected) continue;
    ++wrong;
    report(span, i, expected, actual);
  }
  return wrong;
}

/// Ends of a span that fill no block.
void Sweeper::slow(const Span& span, std::size_t begin, std::size_t end) noexcept {
  if (sweep_.verify) verify_words(span, begin, end);
  if (!writes_all()) return;
  for (std::size_t i = begin; i < end; ++i) span.words[i] = data_word(sweep_.next, i - span.shift);
}

/// A sweep's writes to words whose index has one bit set, when all of the span has been verified.
void Sweeper::powers(const Span& span) const noexcept {
  const std::size_t from = span.begin - span.shift, to = span.end - span.shift;
  for (std::size_t index = 1; index < to && index != 0; index *= 2) {
    if (index >= from) span.words[index + span.shift] = data_word(sweep_.next, index);
  }
}

void Sweeper::block(const Span& span, std::size_t at, std::size_t count, std::size_t position) noexcept {
  if (has_powers_ && has_power(at - span.shift, at - span.shift + count)) return slow(span, at, at + count);
  std::uint64_t* p = span.words + at;
  if (sweep_.verify) {
    const std::uint64_t differs = ASSAY_DISPATCH(block_difference, expected_, p, count, position);
    if (differs != 0 && verify_words(span, at, at + count) == 0) {
      // Wrong when first read, right when looked at again: a bad read or a bad comparison, and an error all
      // the same.
      const std::uint64_t expected = data_word(sweep_.expected, at - span.shift);
      report(span, at, expected, expected ^ differs);
    }
  }
  // A line that was just read is in the cache; only lines that were not read are worth writing past it.
  if (writes_all()) ASSAY_DISPATCH(block_write, next_, p, count, position, !sweep_.verify);
}

void Sweeper::run(const Span& span) noexcept {
  if (span.begin >= span.end) return;
  const std::size_t past_line =
      (reinterpret_cast<std::uintptr_t>(span.words + span.begin) / 8) % vector_words;
  const std::size_t origin = std::min(span.end, span.begin + (vector_words - past_line) % vector_words);
  if (sweep_.verify) prepare(expected_, sweep_.expected, origin - span.shift);
  if (sweep_.write) prepare(next_, sweep_.next, origin - span.shift);
  const std::size_t size = block_words(sweep_.verify ? expected_ : next_, sweep_.write ? next_ : expected_);
  const std::size_t blocks = size == 0 ? 0 : (span.end - origin) / size;
  const std::size_t rest = origin + blocks * size;
  if (sweep_.down) {
    slow(span, rest, span.end);
    for (std::size_t b = blocks; b-- > 0;) block(span, origin + b * size, size, b * size);
    slow(span, span.begin, origin);
  } else {
    slow(span, span.begin, origin);
    for (std::size_t b = 0; b < blocks; ++b) block(span, origin + b * size, size, b * size);
    slow(span, rest, span.end);
  }
  if (sweep_.write && sweep_.powers_only) powers(span);
  ASSAY_DISPATCH(fence);
}

void Sweeper::move(std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t half) noexcept {
  std::uint64_t* to = words + half;
  const std::size_t past_line = (reinterpret_cast<std::uintptr_t>(to + begin) / 8) % vector_words;
  const std::size_t origin = std::min(end, begin + (vector_words - past_line) % vector_words);
  const std::size_t count = (end - origin) / vector_words * vector_words;
  for (std::size_t i = begin; i < origin; ++i) to[i] = words[i];
  ASSAY_DISPATCH(block_copy, to + origin, words + origin, count);
  for (std::size_t i = origin + count; i < end; ++i) to[i] = words[i];
  ASSAY_DISPATCH(fence);
}

}  // namespace

void sweep(const Sweep& sweep, std::uint64_t* words, std::size_t begin, std::size_t end, std::size_t half,
           int thread, ErrorLog& log) noexcept {
  if (begin >= end) return;
  if (sweep.move) return Sweeper::move(words, begin, end, half);
  Sweeper sweeper(sweep, thread, log);
  // Folded: [0, half) as it is, [half, 2 half) as its copy, an odd last word as it is.
  const std::size_t fold_begin = sweep.folded ? std::clamp(half, begin, end) : end;
  const std::size_t fold_end = sweep.folded ? std::clamp(2 * half, begin, end) : end;
  const std::size_t plain = 0 - sweep.first;  // word i follows the closed form at i + first
  const Span parts[] = {{words, begin, fold_begin, plain},
                        {words, fold_begin, fold_end, half + plain},
                        {words, fold_end, end, plain}};
  if (sweep.down) {
    for (std::size_t i = 3; i-- > 0;) sweeper.run(parts[i]);
  } else {
    for (const Span& part : parts) sweeper.run(part);
  }
}

}  // namespace assay::kernels::host
