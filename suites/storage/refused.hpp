// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  /// The same of a path that most nodes share the reason on: its server, no node.
  void tell_of_path(const std::string& path, std::size_t nodes, Context& context) const;
  /// Whether there is anything to tell.
  bool is_finding() const noexcept;
  int reason() const noexcept { return reason_; }
  /// The same with the reason of the operating system, an errno.
  Refused because(int reason) const { return {subject_, reason, true}; }
  /// The same, with what the operating system does with the same request.
  Refused because(const std::string& what) const { return {subject_ + "; " + what, 0, of_data_}; }

 private:
  bool is_full() const noexcept;
  void tell(const std::string& text, int entity, Context& context) const;

  std::string subject_;
  int reason_;
  bool of_data_;
};

/// What a rank was refused that is a finding; `reason` is -1 where it was not.
struct Refusal {
  int node = -1, reason = -1;
};
/// The reason that more than half of `nodes` have, of two at least, and how many do.
struct CommonReason {
  int reason = -1;
  std::size_t nodes = 0;
};
std::optional<CommonReason> common_reason(const std::vector<Refusal>& ranks, std::size_t nodes);

/// Collective over the ranks that use a shared path: a reason that most nodes have is one finding of the
/// path. `mine` is null on a rank that was not refused anything.
void tell_together(const Refused* mine, const std::string& path, Context& context);

}  // namespace assay::storage
