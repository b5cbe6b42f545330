// SPDX-License-Identifier: Apache-2.0
// The collector by itself: no processes, no sockets, and a clock that the test turns.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "supervisor/collector.hpp"

namespace assay::supervisor {
/// Two nodes of two ranks; cases 0 and 1 are node-local, case 2 needs all.
class FakeController final : public Controller {
 public:
  int cases = 3;
  bool started_ = false, fails_to_store = false, fails_to_start = false, fails_to_begin = false,
       fails_to_finish = false;
  std::map<int, std::vector<std::string>> stored;  ///< by case and rank; empty: without its record
  std::map<int, std::string> taken;
  std::vector<std::string> losses, events, hosts;
  std::string why = "not finished";
  bool discarded = false;
  int next_case = 0, segments = 1, shown = 0, without_plan = 0;
  std::string shared;  ///< directory of case 2
  std::vector<std::string> stalls, silent_paths;
  std::set<int> lost_nodes;

  void start(const std::string&) override {
    if (fails_to_start) throw Error(ErrorKind::usage, "--out: exists");
    started_ = true;
  }
  void start_without_plan(const std::vector<std::string>& names) override {
    started_ = true;
    ++without_plan;
    hosts = names;
  }
  bool started() const noexcept override { return started_; }
  void ready(const std::string&) override {
    if (fails_to_begin) throw Error(ErrorKind::io, "disk full");
  }
  Step next() override {
    if (next_case >= cases && segments > 1) {
      --segments;
      next_case = 0;
      return {-1, 0, true};
    }
    if (next_case >= cases || (next_case == 2 && !lost_nodes.empty())) return {-1, 0, false};
    return {next_case++, 10.0, false};
  }
  void take(int rank, const std::string& record) override {
    if (record == "no record") throw Error(ErrorKind::internal, "it cannot be decoded");
    taken[rank] = record;
  }
  void store(int case_index, const std::vector<int>& ranks) override {
    if (fails_to_store) throw Error(ErrorKind::io, "disk full");
    stored[case_index].resize(std::max<std::size_t>(4, ranks.size()));
    for (const int rank : ranks) stored[case_index][static_cast<std::size_t>(rank)] = taken.at(rank);
    taken.clear();
  }
  std::vector<int> lost(const Loss& loss, int case_index) override {
    losses.push_back(loss.kind + ": " + loss.text);
    if (!loss.path.empty()) silent_paths.push_back(loss.path);
    lost_nodes.insert(loss.rank / 2);
    if (case_index < 0 || case_index == 2) return {0, 1, 2, 3};
    return loss.rank < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3};
  }
  void event(const std::string& kind, const std::string& text, int) noexcept override {
    events.push_back(kind + ": " + text);
  }
  void show_alive() noexcept override { ++shown; }
  int finish(const std::string& reason, int) override {
    why = reason;
    if (fails_to_finish) throw Error(ErrorKind::io, "disk full; everything measured is kept");
    started_ = false;
    return reason.empty() && lost_nodes.empty() ? 0 : 3;
  }
  void discard() noexcept override { discarded = true; }
  std::string complaint(int rank) const override { return taken.at(rank) == "broken" ? "it broke" : ""; }
  bool inside_nodes(int index) const override { return index < 2; }
  std::string case_name(int index) const override { return "case" + std::to_string(index); }
  double phase_deadline_s(unsigned, std::optional<double> usual_s) const override {
    return usual_s && *usual_s > 1 ? 4 * *usual_s : 20;
  }
  double silence_s() const override { return 6; }
  double standstill_s() const override { return 8; }
  std::string directories(int index) const override { return index == 2 ? shared : "/scratch"; }
  std::string shared_path(int index) const override { return index == 2 ? shared : ""; }
  double server_standstill_s() const override { return 60; }
  void stalled(int, const std::string& text) noexcept override { stalls.push_back(text); }
  double run_deadline_s() const override { return 100; }
};

constexpr int any_number = -1000;

class CollectorTest : public ::testing::Test {
 protected:
  FakeController controller;
  std::vector<std::pair<int, Message>> sent;
  std::vector<std::string> told;
  double now = 1000;
  Collector collector{4, controller, [this](int rank, const Message& m) { sent.emplace_back(rank, m); },
                      [this](const std::string& line) { told.push_back(line); }, 1000};

  void say(int rank, MessageType type, int number = 0, const std::string& text = "") {
    collector.handle({type, rank, number, text}, now);
  }
  void status(int rank, const Snapshot& s) { say(rank, MessageType::status, 0, to_text(s)); }
  Snapshot running(int case_index, Call call, int peer = no_peer) {
    Snapshot s;
    s.phase = Phase::running;
    s.case_index = case_index;
    s.call = call;
    s.peer = peer;
    s.process_state = 'R';
    return s;
  }
  void begin() {
    for (int r = 0; r < 4; ++r) collector.connected(r, r < 2 ? "node00" : "node01", now);
    say(0, MessageType::start);
    for (int r = 0; r < 4; ++r) say(r, MessageType::ready);
  }
  void record(int case_index, std::vector<int> ranks) {
    for (const int r : ranks) say(r, MessageType::record, case_index, "r" + std::to_string(r));
  }
  /// Lets time pass while all supervisors report, but for `silent`. Nobody moves but those in `moving`.
  void pass(double seconds, std::map<int, Snapshot> at = {}, std::set<int> silent = {},
            std::set<int> moving = {}) {
    const double begin = now;
    for (double end = now + seconds; now < end; now += 0.5) {
      for (int r = 0; r < 4; ++r) {
        Snapshot s = at.contains(r) ? at[r] : Snapshot{};
        s.idle_s = moving.contains(r) ? 0.0 : now - begin;
        if (!silent.contains(r)) status(r, s);
      }
      collector.tend(now);
    }
  }
  int count(int rank, MessageType type, int number = any_number) const {
    int n = 0;
    for (const auto& [to, m] : sent)
      n += to == rank && m.type == type && (number == any_number || m.number == number);
    return n;
  }
  void all_done() {
    for (int r = 0; r < 4; ++r) say(r, MessageType::done);
    collector.tend(now);
  }
};

}  // namespace assay::supervisor
