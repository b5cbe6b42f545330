// SPDX-License-Identifier: Apache-2.0
// What kind of defect a set of wrong memory words looks like.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace assay {

/// A word of memory that did not hold what it should; `index` counts 8-byte words.
struct WrongWord {
  std::uint64_t index = 0, expected = 0, actual = 0;
};

/// - cell: one word
/// - row: words within 2 KiB, the row of a DRAM bank that one access opens
/// - column: words a constant distance of 1 KiB or more apart
/// - data_line: words in many places, the same bit
/// - address_line: words that hold what belongs to the index with one bit changed, or pairs of words whose
/// indices differ in one bit
/// - scattered: none of these
enum class FaultClass { none, cell, row, column, data_line, address_line, scattered };
const char* to_string(FaultClass kind) noexcept;

struct Fault {
  FaultClass kind = FaultClass::none;
  int bit = -1;              ///< data_line: of the word; address_line: of the word index
  std::uint64_t stride = 0;  ///< column: in words
  /// "data line 17", "column, every 1024 words".
  std::string text() const;
};

/// Looks at the records of a sweep (the first ones, when there were too many). Nine tenths of them must
/// agree. `expected_at`, where it is given, says what another index was to hold; give it only for data that
/// differs from index to index.
Fault classify_fault(std::span<const WrongWord> words,
                     const std::function<std::uint64_t(std::uint64_t)>& expected_at = {});

}  // namespace assay
