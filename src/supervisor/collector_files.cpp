// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for the server of a directory that all nodes share: who is to blame where it does not
// answer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "supervisor/collector.hpp"

namespace assay::supervisor {
namespace {

/// Longer than a rank that was not asked to wait is between two requests.
constexpr double stuck_s = late_standstill_s / 2;

}  // namespace

/// Whether nothing but files in a shared directory can be what a rank waits for, and others for it.
bool Collector::waits_for_server(double now) const {
  if (case_ < 0 || ready_at_s_ == 0 || controller_.shared_path(case_).empty()) return false;
  const auto who = suspects(now);
  return std::none_of(who.begin(), who.end(), [](const MissingRank& s) { return !s.heard || stopped(s); }) &&
         std::any_of(who.begin(), who.end(),
                     [](const MissingRank& s) { return s.at.call == Call::files && s.at.idle_s >= stuck_s; });
}

/// Whether the directory answers on the nodes none of whose ranks waits for it.
void Collector::ask_others(const std::vector<MissingRank>& who, double now) {
  std::set<std::string> hosts;
  at_fault_.clear();
  for (const MissingRank& s : who) {
    if (s.at.call != Call::files || s.at.idle_s < stuck_s) continue;
    at_fault_.push_back(s.rank);
    hosts.insert(ranks_[static_cast<std::size_t>(s.rank)].host);
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& r = ranks_[i];
    r.asked = r.touched = false;
    if (r.out || !r.connected || !hosts.insert(r.host).second) continue;  // one of a node
    r.asked = true;
    send_(static_cast<int>(i), {MessageType::touch, -1, 0, controller_.shared_path(case_)});
  }
  state_ = State::asking;
  state_since_s_ = now;
}

/// Two nodes that get no answer are not at fault, nor is one of which nobody knows whether it is alone.
void Collector::check_answers(double now) {
  const bool moves = !waits_for_server(now) || still_s(now) < stuck_s;
  if (moves) {  // the server has answered meanwhile
    state_ = State::measuring;
    end_case_if_all_arrived(now);
    return;
  }
  const auto pending = [](const Rank& r) { return r.asked && !r.touched && !r.out; };
  if (std::any_of(ranks_.begin(), ranks_.end(), pending) && now - state_since_s_ < ask_s) return;
  std::set<std::string> hosts, answered;
  for (const int i : at_fault_) hosts.insert(ranks_[static_cast<std::size_t>(i)].host);
  for (const Rank& r : ranks_) {
    if (pending(r)) hosts.insert(r.host);
    if (r.touched) answered.insert(r.host);
  }
  state_ = State::measuring;
  if (hosts.size() > 1 || answered.empty()) {
    end_unanswered(hosts, now);
    return;
  }
  hang_what_ += fmt::format(": {} does not answer it, and answers {} other node{}",
                            controller_.shared_path(case_), answered.size(), answered.size() == 1 ? "" : "s");
  begin_trace_of(std::exchange(at_fault_, {}), now);
}

void Collector::end_unanswered(const std::set<std::string>& hosts, double now) {
  constexpr std::size_t most_named = 8;
  std::vector<std::string> named(hosts.begin(), hosts.end());
  named.resize(std::min(named.size(), most_named));
  const std::string more =
      hosts.size() > most_named ? fmt::format(" and {} more nodes", hosts.size() - most_named) : "";
  const std::string brief =
      fmt::format("{} has not answered on {}{} for {:.0f} s in {}", controller_.shared_path(case_),
                  fmt::join(named, ", "), more, still_s(now), controller_.case_name(case_));
  const std::string text =
      brief + ": its server, or the way to it; no node is accused, and processes that wait for it may stay";
  for (const int i : missing()) {
    if (ranks_[static_cast<std::size_t>(i)].out) continue;
    drop({i, "stuck", brief, text, "", controller_.shared_path(case_)}, now);
    if (state_ == State::ending) return;
  }
}

void Collector::note_stall(Rank& r) {
  if (case_ >= 0 && r.at.case_index == case_ && r.at.call == Call::files)
    r.stalled_s = std::max(r.stalled_s, r.at.idle_s);
}

/// Of the case that ends: the samples hold it, and nobody may look at them.
void Collector::tell_stalls() {
  std::set<std::string> hosts;
  double longest_s = 0;
  for (Rank& r : ranks_) {
    const double stalled_s = std::exchange(r.stalled_s, 0);
    if (stalled_s < told_stall_s) continue;
    longest_s = std::max(longest_s, stalled_s);
    hosts.insert(r.host);
  }
  const std::string path = controller_.shared_path(case_);
  if (hosts.empty() || path.empty()) return;
  controller_.stalled(
      case_, fmt::format("{} did not answer for {:.0f} s on {} node{} in {}, and then did", path, longest_s,
                         hosts.size(), hosts.size() == 1 ? "" : "s", controller_.case_name(case_)));
}

}  // namespace assay::supervisor
