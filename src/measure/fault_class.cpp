// SPDX-License-Identifier: Apache-2.0
#include "measure/fault_class.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <vector>

namespace assay {
namespace {

constexpr std::uint64_t row_words = 256, least_column_stride = 128;
constexpr int address_bits = 40;  ///< of a word index: 8 TiB

bool most(std::size_t part, std::size_t all) { return 10 * part >= 9 * all && part > 0; }

/// The bit of the index that, changed, leads to the data that was found; -1 if there is none.
int alias_bit(std::span<const WrongWord> words,
              const std::function<std::uint64_t(std::uint64_t)>& expected_at) {
  if (!expected_at) return -1;
  for (int bit = 0; bit < address_bits; ++bit) {
    const auto fits = [&](const WrongWord& w) {
      return w.actual == expected_at(w.index ^ std::uint64_t{1} << bit);
    };
    if (most(static_cast<std::size_t>(std::count_if(words.begin(), words.end(), fits)), words.size()))
      return bit;
  }
  return -1;
}

/// The one bit in which indices of the set differ pairwise; -1 if no bit does so, or several do (then it is a
/// block or a stripe).
int pair_bit(const std::vector<std::uint64_t>& indices) {
  int found = -1;
  for (int bit = 0; bit < address_bits; ++bit) {
    const auto paired = [&](std::uint64_t i) {
      return std::binary_search(indices.begin(), indices.end(), i ^ std::uint64_t{1} << bit);
    };
    if (!most(static_cast<std::size_t>(std::count_if(indices.begin(), indices.end(), paired)),
              indices.size()))
      continue;
    if (found >= 0) return -1;
    found = bit;
  }
  return found;
}

/// The distance that nearly all neighbours have; 0 if they have none in common.
std::uint64_t common_stride(const std::vector<std::uint64_t>& indices) {
  std::map<std::uint64_t, std::size_t> often;
  for (std::size_t i = 1; i < indices.size(); ++i) ++often[indices[i] - indices[i - 1]];
  for (const auto& [stride, n] : often)
    if (most(n, indices.size() - 1)) return stride;
  return 0;
}

/// The bit that is wrong in nearly all words, while nearly no word has another; -1 otherwise.
int common_bit(std::span<const WrongWord> words) {
  std::array<std::size_t, 64> often{};
  for (const WrongWord& w : words) {
    const std::uint64_t wrong = w.expected ^ w.actual;
    if (std::has_single_bit(wrong)) ++often[static_cast<std::size_t>(std::countr_zero(wrong))];
  }
  const auto best = std::max_element(often.begin(), often.end());
  return most(*best, words.size()) ? static_cast<int>(best - often.begin()) : -1;
}

}  // namespace

const char* to_string(FaultClass kind) noexcept {
  switch (kind) {
    case FaultClass::none: return "none";
    case FaultClass::cell: return "single cell";
    case FaultClass::row: return "row";
    case FaultClass::column: return "column";
    case FaultClass::data_line: return "data line";
    case FaultClass::address_line: return "address line";
    case FaultClass::scattered: break;
  }
  return "scattered";
}

std::string Fault::text() const {
  std::string text = to_string(kind);
  if (kind == FaultClass::data_line || kind == FaultClass::address_line)
    text.append(1, ' ').append(std::to_string(bit));
  if (kind == FaultClass::column) text.append(", every ").append(std::to_string(stride)).append(" words");
  return text;
}

Fault classify_fault(std::span<const WrongWord> words,
                     const std::function<std::uint64_t(std::uint64_t)>& expected_at) {
  if (words.empty()) return {};
  std::vector<std::uint64_t> indices;
  for (const WrongWord& w : words) indices.push_back(w.index);
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  // What the words hold says more than where they lie: a block that shows another block's data is no row.
  if (const int bit = alias_bit(words, expected_at); bit >= 0) return {FaultClass::address_line, bit};
  if (indices.size() == 1) return {FaultClass::cell};
  if (indices.back() - indices.front() < row_words) return {FaultClass::row};
  const int bit = common_bit(words);
  if (const std::uint64_t stride = common_stride(indices);
      indices.size() >= 4 && stride >= least_column_stride)
    return {FaultClass::column, -1, stride};
  if (bit >= 0 && indices.size() >= 4) return {FaultClass::data_line, bit};
  if (const int line = bit < 0 ? pair_bit(indices) : -1; line >= 0) return {FaultClass::address_line, line};
  return {FaultClass::scattered};
}

}  // namespace assay
