// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.hpp"
#include "tests/fuzz/targets.hpp"

namespace assay::fuzz {

/// Calls `act` and lets nothing pass but success or an Error for the user, with a message. Returns whether it
/// succeeded.
template <class F>
bool clean(F&& act) {
  try {
    act();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage && error.kind() != ErrorKind::data)
      broken(std::string("an error of the wrong kind: ") + error.what());
    if (std::string(error.what()).empty()) broken("an error without a message");
  }
  return false;
}

}  // namespace assay::fuzz
