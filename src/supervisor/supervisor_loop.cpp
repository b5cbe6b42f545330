// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/search.hpp"

namespace assay::supervisor {
namespace {

constexpr int supervisor_tick_ms = 100;
constexpr unsigned unacknowledged_ms = 8000;

class SupervisorLoop {
 public:
  SupervisorLoop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch)
      : plan_(plan),
        rank_(launch.rank),
        watch_(watch),
        supervisor_(watch.worker, watch.link, watch.heartbeat, launch.rank,
                    [this](const Message& m) { up(m); }),
        search_(plan.folder, launch.rank, launch.size) {}

  int run() {
    for (;;) {
      wait();
      if (const int signal = take_signal(watch_.signals); signal != 0) asked_to_end(signal);
      supervisor_.tend();
      if (!collector_.open()) {
        if (met_) return alone();
        find();
        if (!collector_.open() && supervisor_.worker_ended()) return supervisor_.own_code();
        continue;
      }
      const bool alive = collector_.pump_out() && collector_.pump_in();
      if (const int code = obey(); code >= 0) return code;
      if (!alive) collector_.close();
    }
  }

 private:
  void wait() {
    std::vector<pollfd> fds = {{watch_.signals, POLLIN, 0}};
    if (supervisor_.link_fd() >= 0)
      fds.push_back(
          {supervisor_.link_fd(), static_cast<short>(POLLIN | (supervisor_.wants_out() ? POLLOUT : 0)), 0});
    if (!collector_.open()) search_.watch(fds);
    if (collector_.open())
      fds.push_back(
          {collector_.fd(), static_cast<short>(POLLIN | (collector_.wants_out() ? POLLOUT : 0)), 0});
    poll(fds.data(), fds.size(), collector_.open() ? supervisor_tick_ms : supervisor_tick_ms / 4);
  }

  void up(const Message& message) {
    if (collector_.open()) {
      collector_.queue(message);
      collector_.pump_out();
    } else if (message.type != MessageType::status) {
      unsaid_.push_back(message);
    }
  }

  void find() {
    collector_ = search_.round(supervisor_.address(), now_s());
    if (!collector_.open()) return;
    met_ = true;
    // What is sent twice a second must be acknowledged: a collector behind a cut cable is gone.
    setsockopt(collector_.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
    for (const Message& m : unsaid_) collector_.queue(m);
    unsaid_.clear();
    collector_.pump_out();
  }

  /// The exit code when the collector has said so, else -1.
  int obey() {
    try {
      while (const auto message = collector_.take()) {
        if (message->type == MessageType::exit) {
          supervisor_.kill_worker();
          return message->number;
        }
        supervisor_.command(*message);
      }
    } catch (const Error&) {
      collector_.close();
    }
    return -1;
  }

  void asked_to_end(int signal) {
    if (collector_.open())
      up({MessageType::stop_request, rank_, signal, ""});
    else
      supervisor_.kill_worker();
  }

  /// The collector was there and is gone without having said how the run ended.
  int alone() {
    supervisor_.kill_worker();
    if (rank_ == 1)
      std::fprintf(stderr, "assay: rank 0's supervisor is gone; %s\n", plan_.without_collector.c_str());
    return 3;
  }

  const SupervisorPlan& plan_;
  int rank_;
  const Watch& watch_;
  Stream collector_;
  Supervisor supervisor_;
  Search search_;
  std::vector<Message> unsaid_;
  bool met_ = false;
};

}  // namespace

int supervisor_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch) {
  return SupervisorLoop(plan, launch, watch).run();
}

}  // namespace assay::supervisor
