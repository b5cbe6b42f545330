// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/refused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/system.hpp"

namespace assay::storage {

Refused::Refused(const std::string& what, int reason, bool of_data)
    : Error(ErrorKind::resource, fmt::format("{}: {}{}{}", host_name(), what, reason != 0 ? ": " : "",
                                             reason != 0 ? std::strerror(reason) : "")),
      subject_(what),
      reason_(reason),
      of_data_(of_data) {}

bool Refused::is_full() const noexcept { return reason_ == ENOSPC || reason_ == EDQUOT || reason_ == EFBIG; }

bool Refused::is_finding() const noexcept { return is_full() || of_data_ || reason_ == EIO; }

void Refused::tell(const std::string& text, int entity, Context& context) const {
  // What the file system does not offer is a matter of how it is set up; what fails is to be looked into.
  const bool unable = is_full() || reason_ == EINVAL || reason_ == EOPNOTSUPP;
  context.record.launch_event(is_full() ? "warn" : "fail", unable ? "mismatch" : "missing", text, entity);
}

void Refused::tell(Context& context) const {
  if (is_finding()) tell(what(), context.entities.node(context.topology.me().node), context);
}

void Refused::tell_of_path(const std::string& path, std::size_t nodes, Context& context) const {
  tell(fmt::format("{}: {} of {} nodes have this on the shared path, so that no node is named: {}", path,
                   nodes, context.topology.nodes.size(), what()),
       -1, context);
}

std::optional<CommonReason> common_reason(const std::vector<Refusal>& ranks, std::size_t nodes) {
  std::map<int, std::set<int>> having;  // nodes by reason
  for (const Refusal& rank : ranks)
    if (rank.reason >= 0) having[rank.reason].insert(rank.node);
  for (const auto& [reason, those] : having)
    if (those.size() >= 2 && 2 * those.size() > nodes) return CommonReason{reason, those.size()};
  return std::nullopt;
}

void tell_together(const Refused* mine, const std::string& path, Context& context) {
  Refusal own{context.topology.me().node, -1};
  if (mine != nullptr && mine->is_finding()) own.reason = mine->reason();
  std::vector<Refusal> all(static_cast<std::size_t>(context.world.size()));
  context.world.all_gather(&own, all.data(), sizeof own);
  if (own.reason < 0) return;
  const auto common = common_reason(all, context.topology.nodes.size());
  if (!common || common->reason != own.reason) return mine->tell(context);
  const auto first =
      std::find_if(all.begin(), all.end(), [&](const Refusal& r) { return r.reason == own.reason; });
  if (first - all.begin() == context.world.rank()) mine->tell_of_path(path, common->nodes, context);
}

}  // namespace assay::storage
