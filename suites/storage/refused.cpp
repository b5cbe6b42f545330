// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/refused.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/system.hpp"

namespace assay::storage {

Refused::Refused(const std::string& what, int reason, bool of_data)
    : Error(ErrorKind::resource, fmt::format("{}: {}{}{}", host_name(), what, reason != 0 ? ": " : "",
                                             reason != 0 ? std::strerror(reason) : "")),
      subject_(what),
      reason_(reason),
      of_data_(of_data) {}

void Refused::tell(Context& context) const {
  const bool full = reason_ == ENOSPC || reason_ == EDQUOT || reason_ == EFBIG;
  if (!full && !of_data_ && reason_ != EIO) return;
  context.record.launch_event(full ? "warn" : "fail", full ? "mismatch" : "corrupt", what(),
                              context.entities.node(context.topology.me().node));
}

}  // namespace assay::storage
