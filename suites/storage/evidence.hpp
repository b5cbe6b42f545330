// SPDX-License-Identifier: Apache-2.0
// What a rank can show for its rates: that storage was met, and what was found wrong.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "suites/storage/cold.hpp"
#include "suites/storage/damage_log.hpp"

namespace assay::storage {

struct Evidence {
  double asked = 0, verified = 0;  ///< bytes
  double moved = 0;                ///< bytes by the kernel's counters; NaN: they do not tell
  double resident = 0;             ///< largest share of a part in the page cache before it was read
  std::array<std::uint64_t, 6> damage{};

  void take(const DamageLog& log);
  void add(const Evidence& other);
  Json to_json() const;
  static Evidence from(const Json& json);

  bool cold() const {
    return asked > 0 && moved >= least_moved_share * asked && resident <= 1 - least_moved_share;
  }
  double moved_share() const { return moved / asked; }
  void store(CaseRecord::Row& row) const;  ///< the metrics that every case has
  void tell_cached(const std::string& where, const Case& c, Context& context, int entity) const;
  /// Both.
  void report(CaseRecord::Row& row, const std::string& where, const Case& c, Context& context) const;
};

/// Counts what the kernel moves while it lives.
class Meter {
 public:
  explicit Meter(bool write) : write_(write), before_(moved_now()) {}
  double moved() const;

 private:
  bool write_;
  std::optional<Moved> before_;
};

}  // namespace assay::storage
