// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/route.hpp"

namespace assay::supervisor {
namespace {

constexpr int supervisor_tick_ms = 100;
/// The time to find the collector for the report of a worker that was killed or left with an error.
constexpr double report_s = 5.0;

class SupervisorLoop {
 public:
  SupervisorLoop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch,
                 double limit_s)
      : plan_(plan),
        rank_(launch.rank),
        last_rank_(launch.size - 1),
        watch_(watch),
        supervisor_(
            watch.worker, watch.link, watch.heartbeat, launch.rank,
            [this](const Message& m) { route_.send(m); }, plan.touch),
        route_(plan.folder, {launch.rank, launch.size, std::max(launch.local_size, 1), host_name()}),
        limit_s_(limit_s) {}

  int run() {
    const int code = serve();
    clean_up_after(plan_, supervisor_, watch_);
    return code;
  }

 private:
  int serve() {
    for (;;) {
      wait();
      if (const int signal = take_signal(watch_.signals); signal != 0) asked_to_end(signal);
      supervisor_.hold(route_.behind() && !route_.lost());
      supervisor_.tend();
      route_.serve(supervisor_.address(), now_s(), [this](const Message& m) { obey(m); });
      if (route_.knows_address()) watch_.heartbeat.address_known = true;
      if (exit_code_ >= 0) {
        // The others of this node have their orders through this process.
        if (route_.relays_nothing() || route_.lost() || now_s() - exit_at_s_ > farewell_s) return exit_code_;
      } else if (route_.lost()) {
        return alone();
      } else if (!route_.met() && supervisor_.worker_ended() && has_nothing_to_report()) {
        return supervisor_.own_code();
      } else if (!route_.met() && never_meets()) {
        return unmet();
      }
    }
  }

  void wait() {
    std::vector<pollfd> fds = {{watch_.signals, POLLIN, 0}};
    if (supervisor_.link_fd() >= 0 && supervisor_.link_events() != 0)
      fds.push_back({supervisor_.link_fd(), supervisor_.link_events(), 0});
    route_.watch(fds);
    poll(fds.data(), fds.size(), route_.joined() ? supervisor_tick_ms : supervisor_tick_ms / 4);
  }

  void obey(const Message& message) {
    if (message.type != MessageType::exit) {
      supervisor_.command(message);
      return;
    }
    supervisor_.kill_worker();
    exit_code_ = message.number;
    exit_at_s_ = now_s();
  }

  /// A worker that was killed, or left with an error, before the collector was found is reported when it is:
  /// otherwise the collector learns only that the launcher ends the job, or misses this rank among those that
  /// agreed on the error.
  bool has_nothing_to_report() {
    if (!supervisor_.worker_killed() && !supervisor_.worker_left_with_error()) return true;
    if (ended_at_s_ == 0) ended_at_s_ = now_s();
    return now_s() - ended_at_s_ > report_s;
  }

  /// Not all launchers end the other ranks when rank 0 is gone.
  bool never_meets() {
    const double now = now_s();
    const double since_s = now - std::exchange(looked_at_s_, now);
    searched_s_ += std::min(since_s, 1.0);  // more only if this process did not run
    return searched_s_ > limit_s_;
  }

  int unmet() {
    std::fprintf(stderr, "assay: rank %d on %s found no way to rank 0's supervisor in %.0f s and ends\n",
                 rank_, host_name().c_str(), searched_s_);
    supervisor_.kill_worker();
    return 3;
  }

  void asked_to_end(int signal) {
    if (route_.met())
      route_.send({MessageType::stop_request, rank_, signal, ""});
    else
      supervisor_.kill_worker();
  }

  /// The collector was there and is gone without having said how the run ended. Rank 1 and the last one tell
  /// it: one of them may be gone with the node of rank 0.
  int alone() {
    supervisor_.kill_worker();
    if (rank_ == 1 || rank_ == last_rank_)
      std::fprintf(stderr, "assay: rank 0's supervisor is gone; %s\n", plan_.without_collector.c_str());
    return 3;
  }

  const SupervisorPlan& plan_;
  int rank_, last_rank_;
  const Watch& watch_;
  Supervisor supervisor_;
  Route route_;
  int exit_code_ = -1;
  double exit_at_s_ = 0, ended_at_s_ = 0;
  double limit_s_, looked_at_s_ = now_s(), searched_s_ = 0;
};

}  // namespace

int supervisor_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch,
                    double limit_s) {
  return SupervisorLoop(plan, launch, watch, limit_s).run();
}

}  // namespace assay::supervisor
