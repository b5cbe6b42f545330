// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/fault_text.hpp"

#include <algorithm>
#include <set>

namespace assay::memory {
namespace {

using kernels::Background;
using kernels::ErrorRecord;

constexpr std::size_t most_bits = 4;

/// "bits 17 0>1 12, 17 1>0 3", the most frequent ones.
std::string bits_text(const std::array<std::uint64_t, 128>& bits) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < bits.size(); ++i)
    if (bits[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bits[a] > bits[b]; });
  std::string text = "bits";
  for (std::size_t i = 0; i < std::min(order.size(), most_bits); ++i)
    text += (i == 0 ? " " : ", ") + std::to_string(order[i] % 64) + (order[i] < 64 ? " 0>1 " : " 1>0 ") +
            std::to_string(bits[order[i]]);
  if (order.size() > most_bits) text += " and " + std::to_string(order.size() - most_bits) + " more";
  return text;
}

std::string place_text(const ErrorRecord& e) {
  std::string text = "first: byte " + std::to_string(e.index * 8);
  if (e.sm >= 0)
    text += ", SM " + std::to_string(e.sm) + " warp " + std::to_string(e.warp) + " lane " +
            std::to_string(e.lane);
  if (e.unstable) return text + ", another value each time it is read";
  if (e.reread == e.expected) return text + ", right when read again";
  text += e.reread == e.actual ? ", the same when read again" : ", another value when read again";
  if (e.cached) text += kernels::cached_words;
  return text;
}

}  // namespace

void SweepErrors::add(const kernels::ErrorLog& log, std::size_t first) {
  count += log.count();
  const auto more = log.bits();
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] += more[i];
  for (ErrorRecord e : log.records()) {
    e.index += first;
    records.push_back(e);
  }
}

std::string fault_text(const std::string& pattern, const SweepErrors& errors) {
  std::vector<WrongWord> words;
  for (const ErrorRecord& e : errors.records) words.push_back({e.index, e.expected, e.actual});
  const kernels::Data& data = errors.sweep.expected;
  const bool differs = data.kind == Background::own_address || data.kind == Background::random;
  const auto expected_at = [&](std::uint64_t index) { return data_word(data, index); };
  const Fault fault = differs ? classify_fault(words, expected_at) : classify_fault(words);
  std::string text = fault.text() + ": " + std::to_string(errors.count) +
                     (errors.count == 1 ? " wrong word of " : " wrong words of ") + pattern + " sweep " +
                     std::to_string(errors.number);
  if (errors.records.empty()) return text;
  const auto [low, high] =
      std::minmax_element(errors.records.begin(), errors.records.end(),
                          [](const ErrorRecord& a, const ErrorRecord& b) { return a.index < b.index; });
  if (errors.count > 1)
    text += ", bytes " + std::to_string(low->index * 8) + " to " + std::to_string(high->index * 8 + 7);
  text += ", " + bits_text(errors.bits);
  const int sm = errors.records.front().sm;
  // A block of threads, on one multiprocessor, looks at one tile at a time. Chance lets one multiprocessor
  // see all of four tiles once in millions.
  std::set<std::uint64_t> tiles;
  for (const ErrorRecord& e : errors.records)
    tiles.insert(e.index * sizeof(std::uint64_t) / kernels::device_tile_bytes);
  const bool one_sm = std::all_of(errors.records.begin(), errors.records.end(),
                                  [&](const ErrorRecord& e) { return e.sm == sm; });
  if (sm >= 0 && one_sm && tiles.size() >= 4) text += "; all seen by SM " + std::to_string(sm);
  return text + "; " + place_text(errors.records.front());
}

}  // namespace assay::memory
