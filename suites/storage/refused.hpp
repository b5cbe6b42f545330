// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.hpp"
#include "suite/suite.hpp"

namespace assay::storage {

/// The operating system refused a request.
class Refused : public Error {
 public:
  /// `what` names path and operation; host and reason are added. `reason` is an errno, 0 for a transfer that
  /// ended early without one.
  Refused(const std::string& what, int reason, bool of_data = false);

  /// A full disk or quota is a warning. EIO, and whatever else stops the transfer of data in an open file, is
  /// a fault of the node's storage. Other reasons (a missing directory, no permission) are no finding.
  void tell(Context& context) const;
  int reason() const noexcept { return reason_; }
  /// The same with the reason of the operating system, an errno.
  Refused because(int reason) const { return {subject_, reason, true}; }

 private:
  std::string subject_;
  int reason_;
  bool of_data_;
};

}  // namespace assay::storage
