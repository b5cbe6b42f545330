// SPDX-License-Identifier: Apache-2.0
// Ranks that are gone, and how the run goes on without them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "supervisor/collector.hpp"

namespace assay::supervisor {

void Collector::check_silence(double now, double limit_s) {
  // No rank waits for one that takes no part, but nobody leaves MPI with it, and the launcher waits for its
  // host.
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& r = ranks_[i];
    if (!r.idle || !r.connected || r.done || r.silent || now - r.heard_at_s <= limit_s) continue;
    r.silent = idle_lost_ = true;
    tell_(fmt::format("{}, which takes no part, is unreachable: the run goes on", who(static_cast<int>(i))));
  }
  const auto quiet_for = [&](const Rank& r) {
    return r.connected && !r.out && !r.done ? now - r.heard_at_s : 0;
  };
  if (std::none_of(ranks_.begin(), ranks_.end(), [&](const Rank& r) { return quiet_for(r) > limit_s; }))
    return;
  std::vector<int> quiet;
  std::set<std::string> quiet_hosts, other_hosts;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& r = ranks_[i];
    if (r.host != ranks_.front().host && !r.out) other_hosts.insert(r.host);
    if (quiet_for(r) < 0.8 * limit_s)
      continue;  // they report at different times: one that is silent is rarely alone
    r.silent = true;
    quiet.push_back(static_cast<int>(i));
    quiet_hosts.insert(r.host);
  }
  if (quiet_hosts.size() > 1 && quiet_hosts == other_hosts) {
    const std::string what = "receives nothing from other hosts: the network of its host is down";
    const Rank& first = ranks_.front();
    if (first.out)  // no loss of the run, which ends all the same
      return end_run(who(0) + (first.idle ? ", which takes no part, " : " ") + what, false, now);
    lose(0, "lost", what, now);
    end_run(why_, false, now);
    return;
  }
  // Of two hosts nobody sees which one's network is down; the run can go on at this end only.
  const char* either = other_hosts.size() == 1 && quiet_hosts == other_hosts
                           ? "; of two hosts the network of either may be down"
                           : "";
  std::vector<Loss> losses;
  for (const int rank : quiet)
    losses.push_back(loss_of(rank, "lost",
                             fmt::format("is unreachable: no message from its supervisor for {:.0f} s{}",
                                         quiet_for(ranks_[static_cast<std::size_t>(rank)]), either)));
  lose_together(losses, true, now);
}

void Collector::lose(int rank, const std::string& kind, const std::string& what, double now) {
  if (ranks_[static_cast<std::size_t>(rank)].out || state_ == State::ending) return;  // the file is closed
  drop(loss_of(rank, kind, what), now);
}

/// One rank of each host: all are named before it is decided who goes on. Without `each`, of hosts that
/// cannot go on without another one only the first is named.
void Collector::lose_together(const std::vector<Loss>& losses, bool each, double now) {
  std::set<std::string> hosts;
  for (const Loss& loss : losses) {
    const Rank& r = ranks_[static_cast<std::size_t>(loss.rank)];
    if ((each || !r.out) && hosts.insert(r.host).second) note(loss);
  }
  if (!hosts.empty()) go_on(now);
}

Loss Collector::loss_of(int rank, const std::string& kind, const std::string& what) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  const std::string brief = fmt::format("{} {}", who(rank), what);
  return {rank, kind, brief, fmt::format("{}: {}", brief, r.hung_at.empty() ? where(r) : r.hung_at), r.trace};
}

/// Goes on without a rank, and without those that cannot go on without it.
void Collector::drop(const Loss& loss, double now) {
  note(loss);
  go_on(now);
}

void Collector::note(const Loss& loss) {
  const int rank = loss.rank;
  Rank& r = ranks_[static_cast<std::size_t>(rank)];
  r.lost = r.out = true;
  r.parts = {};
  const bool first = !std::exchange(any_lost_, true);
  tell_(loss.text);
  if (!r.trace.empty()) tell_(fmt::format("rank {}'s stack:\n{}", rank, r.trace));
  std::vector<int> affected;
  if (controller_.started() && ready_at_s_ > 0)
    affected = controller_.lost(loss, case_);
  else
    store_early_loss(loss, first);
  if (why_.empty()) why_ = loss.brief;
  for (const int i : affected) {
    Rank& other = ranks_[static_cast<std::size_t>(i)];
    if (!std::exchange(other.out, true) && other.connected) send_(i, {MessageType::kill, -1, 0, ""});
  }
  if (r.connected) send_(rank, {MessageType::kill, -1, 0, ""});
}

/// After losses.
void Collector::go_on(double now) {
  const bool none_left = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& x) { return x.out; });
  if (none_left || ready_at_s_ == 0)
    end_run(why_, false, now);
  else if (state_ == State::measuring)
    end_case_if_all_arrived(now);
}

/// Before the first case; the run ends.
void Collector::store_early_loss(const Loss& loss, bool first) {
  try {
    std::vector<std::string> hosts;
    for (const Rank& r : ranks_) hosts.push_back(r.host);
    if (first && !controller_.started()) controller_.start_without_plan(hosts);
  } catch (const std::exception& e) {
    tell_(e.what());
  }
  if (controller_.started()) controller_.event(loss.kind, loss.text, loss.rank);
}

}  // namespace assay::supervisor
