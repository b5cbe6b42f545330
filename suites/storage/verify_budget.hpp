// SPDX-License-Identifier: Apache-2.0
// What verification may take of the time of a case.
#pragma once

#include "base/clock.hpp"

namespace assay::storage {

inline constexpr double verify_share = 0.05;

class VerifyBudget {
 public:
  /// A verification begins.
  void begin() noexcept { from_s_ = now_s(); }
  /// Whether all of them, with this one, have taken at most `share` of the time since this was made.
  bool left(double share = verify_share) const noexcept {
    const double now = now_s();
    return spent_s_ + now - from_s_ <= share * (now - made_s_);
  }
  void end() noexcept { spent_s_ += now_s() - from_s_; }

 private:
  double made_s_ = now_s(), from_s_ = 0, spent_s_ = 0;
};

}  // namespace assay::storage
