// SPDX-License-Identifier: Apache-2.0
// Which rank does not arrive, and where each rank is.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "supervisor/collector.hpp"

namespace assay::supervisor {

/// Before the first case: the slowest rank's phase has its own time.
void Collector::check_phase(double now) {
  constexpr auto done = static_cast<unsigned>(Phase::waiting);
  unsigned slowest = done;
  std::array<std::size_t, phase_count + 1> in_phase{};
  for (const Rank& r : ranks_) {
    if (r.out) continue;
    const unsigned phase =
        r.ready ? done : std::min(done, static_cast<unsigned>(r.connected ? r.at.phase : Phase::launch));
    slowest = std::min(slowest, phase);
    // Not ready and waiting: it takes no part, and had nothing to prepare.
    if (r.ready || phase != done) ++in_phase[phase];
  }
  const std::size_t all = std::accumulate(in_phase.begin(), in_phase.end(), std::size_t{0});
  std::size_t began = all;
  for (unsigned phase = 0; phase <= done && 2 * began > all; began -= in_phase[phase++])
    if (phases_.most_began_s[phase] == 0) phases_.most_began_s[phase] = now;
  if (slowest != phases_.slowest) {
    phases_.slowest = slowest;
    phases_.since_s = now;
  }
  const double next_began_s = phases_.most_began_s[phases_.slowest + 1];
  const auto usual_s =
      next_began_s > 0 ? std::optional(next_began_s - phases_.most_began_s[phases_.slowest]) : std::nullopt;
  const double limit = controller_.phase_deadline_s(phases_.slowest, usual_s);
  if (now - phases_.since_s > limit)
    begin_trace(now, fmt::format("did not complete {} within {:.0f} s{}",
                                 to_string(static_cast<Phase>(phases_.slowest)), limit,
                                 usual_s ? fmt::format(" (most ranks: {:.0f} s)", *usual_s) : ""));
}

void Collector::check_time(double now) {
  if (stop_signal_ != 0 && now - stop_at_s_ > usr_grace_s) {
    end_run(fmt::format("ended by {}", signal_text(stop_signal_)), false, now);
    return;
  }
  if (case_ >= 0 && hangs(now)) {
    begin_trace(now, fmt::format("did not end {} in time", controller_.case_name(case_)));
    return;
  }
  const double run_limit = controller_.run_deadline_s();
  if (now - ready_at_s_ <= run_limit) return;
  const std::string what = fmt::format("did not end within the run's time limit of {:.0f} s", run_limit);
  // No case may stay beyond it. One with progress is no evidence against any rank.
  if (case_ >= 0 && still_s(now) >= late_standstill_s)
    begin_trace(now, what);
  else
    end_run(what, false, now);
}

std::vector<int> Collector::missing() const {
  std::vector<int> out;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& r = ranks_[i];
    const bool behind =
        ready_at_s_ == 0
            ? !r.ready && static_cast<unsigned>(r.connected ? r.at.phase : Phase::launch) <= phases_.slowest
            : !r.has_record;
    if (!r.out && behind) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::vector<MissingRank> Collector::suspects(double now) const {
  std::vector<MissingRank> out;
  for (const int i : missing()) {
    const Rank& r = ranks_[static_cast<std::size_t>(i)];
    MissingRank s{i, r.connected && now - r.heard_at_s < controller_.silence_s() / 2, r.at};
    if (!r.connected) s.at.phase = Phase::launch;
    out.push_back(s);
  }
  return out;
}

/// Whether ranks set a communicator up, and the others wait for them.
bool Collector::sets_up(double now) const {
  const auto who = suspects(now);
  return all_wait(who) &&
         std::none_of(who.begin(), who.end(), [](const MissingRank& s) { return !s.heard || stopped(s); }) &&
         std::any_of(who.begin(), who.end(), [](const MissingRank& s) { return s.at.call == Call::set_up; });
}

/// A case with progress may be late and does not hang; one without progress hangs before it is late, where
/// all ranks wait for others.
bool Collector::hangs(double now) const {
  const bool late = now > case_deadline_at_s_;
  if (waits_for_server(now)) return still_s(now) >= controller_.server_standstill_s();
  if (!late && now - case_since_s_ < controller_.standstill_s()) return false;
  if (sets_up(now)) return still_s(now) >= set_up_s + set_up_of_rank_s * static_cast<double>(ranks_.size());
  return still_s(now) >= (late ? late_standstill_s : controller_.standstill_s()) &&
         (late || all_wait(suspects(now)));
}

/// For how long no missing rank of the case has made progress.
double Collector::still_s(double now) const {
  double still_s = now - case_since_s_;
  for (const MissingRank& s : suspects(now))
    if (s.heard) still_s = std::min(still_s, s.at.idle_s);
  return still_s;
}

/// The cause is decided before stacks are read: reading them wakes stopped processes.
void Collector::begin_trace(double now, const std::string& what) {
  hang_what_ = what;
  const auto who = suspects(now);
  if (all_wait(who) && blame_who_left(now)) return;
  if (waits_for_server(now)) {
    ask_others(who, now);
    return;
  }
  const HangAttribution found = attribute_hang(who, ready_at_s_ == 0 ? 0.0 : late_standstill_s / 2);
  std::vector<int> at_fault = found.at_fault;
  const auto active = std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& r) { return !r.out; });
  if (at_fault.empty() && found.links.empty() && ready_at_s_ == 0 &&
      static_cast<std::ptrdiff_t>(who.size()) < active) {
    // The others are beyond that phase, and no link is known. Of those that are not, one may wait for
    // another: one host is named.
    const auto host = [this](const MissingRank& s) { return ranks_[static_cast<std::size_t>(s.rank)].host; };
    for (const MissingRank& s : who)
      if (host(s) == host(who.front())) at_fault.push_back(s.rank);
  }
  if (at_fault.empty())
    end_stuck(found, now);
  else
    begin_trace_of(std::move(at_fault), now);
}

void Collector::begin_trace_of(std::vector<int> ranks, double now) {
  at_fault_ = std::move(ranks);
  state_ = State::tracing;
  state_since_s_ = now;
  for (const int i : at_fault_) {
    Rank& r = ranks_[static_cast<std::size_t>(i)];
    r.trace.clear();
    r.hung_at = where(r);
    send_(i, {MessageType::trace_request, -1, 0, ""});
  }
}

/// No rank has evidence against it: links are named, and ranks that cannot continue end.
void Collector::end_stuck(const HangAttribution& found, double now) {
  constexpr std::size_t most_named = 4;
  const bool early = ready_at_s_ == 0 && !found.links.empty();
  if (!early &&
      (case_ < 0 || ready_at_s_ == 0 || !hangs(now))) {  // late as a whole, while its ranks make progress
    end_run(hang_what_, false, now);
    return;
  }
  std::string brief, text;
  for (std::size_t i = 0; i < std::min(found.links.size(), most_named); ++i) {
    const auto [a, b] = found.links[i];
    brief += fmt::format("{}{} and {}", i == 0 ? "" : "; ", who(a), who(b));
    for (const int rank : {a, b})
      text += fmt::format("; rank {}: {}", rank, where(ranks_[static_cast<std::size_t>(rank)]));
  }
  if (found.links.size() > most_named) brief += fmt::format("; and {} more", found.links.size() - most_named);
  const std::string what =
      early ? to_string(static_cast<Phase>(phases_.slowest)) : controller_.case_name(case_);
  const std::size_t waiting = missing().size();
  brief = brief.empty()
              ? fmt::format("{}: {} ranks made no progress for {:.0f} s; no rank or link could be blamed",
                            what, waiting, still_s(now))
              : fmt::format("{}: an exchange does not end between {}: the link or either of its ends", what,
                            brief);
  if (early) {  // an event of no rank, after which all are launched again
    tell_(brief + text);
    store_early_loss({-1, "stuck", brief, brief + text, ""}, true);
    end_run(brief, false, now);
    return;
  }
  for (const int i : missing()) {
    if (ranks_[static_cast<std::size_t>(i)].out) continue;
    drop({i, "stuck", brief, brief + text, ""}, now);
    if (state_ == State::ending) return;
  }
  if (waiting == 0) end_run(hang_what_, false, now);
}

/// A rank that met an error amid something collective has long handed in its record; the others wait for it
/// in vain. In a case inside nodes nobody on another node does.
bool Collector::blame_who_left(double now) {
  const bool inside_nodes = case_ >= 0 && controller_.inside_nodes(case_);
  std::set<std::string> waiting;
  for (const int i : missing()) waiting.insert(ranks_[static_cast<std::size_t>(i)].host);
  bool found = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& r = ranks_[i];
    if (r.out || !r.has_record || (inside_nodes && !waiting.contains(r.host))) continue;
    const std::string why = controller_.complaint(static_cast<int>(i));
    if (why.empty()) continue;
    found = true;
    lose(static_cast<int>(i), "hang",
         fmt::format("left {} while other ranks waited ({})", controller_.case_name(case_), why), now);
    if (state_ == State::ending) break;
  }
  return found;
}

void Collector::end_trace(double now) {
  state_ = ready_at_s_ == 0 ? State::starting : State::measuring;
  std::vector<Loss> losses;
  std::set<std::string> hosts, at_fault;
  for (const Rank& r : ranks_)
    if (!r.out) hosts.insert(r.host);
  for (const int rank : at_fault_) {
    const Rank& r = ranks_[static_cast<std::size_t>(rank)];
    if (r.out) continue;
    losses.push_back(loss_of(rank, "hang", hang_what_));
    at_fault.insert(r.host);
  }
  // What is true of most hosts is little evidence against each.
  lose_together(losses, 2 * at_fault.size() <= hosts.size(), now);
  if (state_ == State::measuring) end_case_if_all_arrived(now);  // they may have died meanwhile
}

std::string Collector::who(int rank) const {
  const Rank& r = ranks_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} on {}", rank, r.host.empty() ? "an unknown host" : r.host);
}

std::string Collector::where(const Rank& r) const {
  if (!r.connected && r.host.empty()) return "no message since the start";
  std::string out;
  if (case_ >= 0)
    out = r.has_record ? fmt::format("had ended {}", controller_.case_name(case_))
                       : fmt::format("in {}, after {} batch{}", controller_.case_name(case_), r.at.iteration,
                                     r.at.iteration == 1 ? "" : "es");
  else
    out = fmt::format("in {}", to_string(r.at.phase));
  if (r.at.call == Call::files)
    out += ", at work on files" + (case_ < 0 ? "" : " in " + controller_.directories(case_));
  else if (r.at.call != Call::none)
    out += r.at.peer == no_peer ? fmt::format(", inside a {} of its group", to_string(r.at.call))
                                : fmt::format(", inside a {} with rank {}", to_string(r.at.call), r.at.peer);
  if (r.at.process_state == 'T') out += ", its process is stopped";
  return out + fmt::format(", last progress {:.1f} s before", r.at.idle_s);
}

}  // namespace assay::supervisor
