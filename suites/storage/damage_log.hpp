// SPDX-License-Identifier: Apache-2.0
// What was found wrong in a case: counted by kind, located, told; and damage made on purpose.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "suite/suite.hpp"
#include "suites/storage/word.hpp"

namespace assay::storage {

/// A block that was read, as it is about to be checked.
struct Block {
  std::string path;
  WordAddress address;                                             ///< of its first word
  std::span<std::uint64_t> data;                                   ///< of what should be there
  std::uint64_t read_words = 0;                                    ///< of these, from the first on, were read
  std::function<std::uint64_t(std::uint64_t offset)> reread = {};  ///< a word from storage once more
};

/// Checks blocks for one rank in one case.
class DamageLog {
 public:
  /// Wrong words are those of the row `entity`.
  DamageLog(const Known& known, int entity, Context& context)
      : known_(known), entity_(entity), context_(context) {}

  /// Compares every word or, without `all`, one of each sector; where that is wrong, every word. Returns how
  /// many words were compared.
  std::uint64_t check(const Block& block, bool all = true);
  std::uint64_t words(Damage damage) const noexcept { return counts_[static_cast<std::size_t>(damage)]; }
  const Known& known() const noexcept { return known_; }
  Known& known() noexcept { return known_; }

 private:
  void tell(const Block& block, const Finding& finding);

  Known known_;
  int entity_;
  Context& context_;
  std::array<std::uint64_t, 6> counts_{};
  int told_ = 0;
  static constexpr int most_told = 4;  ///< events of a case and rank
};

/// True where --inject tells to do something at the target: bitflip:target=disk-stale and so on.
bool told_to(const Context& context, const char* target);
/// What --inject can break: words in buffers by `disk`, and orders.
std::vector<std::string> disk_targets();
/// Damage made on purpose in data that were read.
void corrupt(Block& block, const Known& known, const Context& context);

/// One fault of each kind in memory: all must be told apart, located and counted.
results::SelftestRow self_test(const RandomStream& random, int entity);

}  // namespace assay::storage
