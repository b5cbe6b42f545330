// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/bounds.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process_stat.hpp"
#include "supervisor/collector.hpp"
#include "supervisor/connections.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/reception.hpp"
#include "supervisor/rendezvous.hpp"

namespace assay::supervisor {
namespace {

constexpr int tick_ms = 100;

/// Open MPI's launcher waits a quarter of an hour for a host that it cannot reach, and 3 s where ranks leave
/// MPI without its calls. All is on disk by now. At a first signal it asks its daemons to end, at a second it
/// goes at once. Both come before any rank has left: a signal while it ends a job because a rank left with a
/// code other than 0 makes Open MPI 4.1 crash.
void end_launcher() {
  const std::string name = launcher_parent(true);
  if (name.empty()) return;
  std::fprintf(stderr, "assay: ending %s, which waits for ranks that were lost\n", name.c_str());
  const pid_t launcher = getppid();
  // It may hang in its own clean-up; no process waits for it to end.
  if (fork() == 0) {
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    setsid();
    for (int i = 0; i < 40 && ::kill(launcher, 0) == 0; ++i) usleep(100'000);
    if (::kill(launcher, 0) == 0) ::kill(launcher, SIGKILL);
    _exit(0);
  }
  for (int i = 0; i < 2; ++i) {
    usleep(300'000);  // time to pass on what was said, and to take the first signal in
    ::kill(launcher, SIGTERM);
  }
}

void print(const std::string& text) { std::fprintf(stderr, "assay: %s\n", text.c_str()); }

class CollectorLoop {
 public:
  CollectorLoop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch)
      : plan_(plan),
        watch_(watch),
        code_in_file_(plan.code_in_file),
        controller_(plan.make_controller()),
        connections_(launch.size),
        collector_(
            launch.size, *controller_, [this](int rank, const Message& m) { send(rank, m); }, print, now_s()),
        supervisor_(
            watch.worker, watch.link, watch.heartbeat, 0,
            [this](const Message& m) { collector_.handle(m, now_s()); }, plan.touch) {
    raise_open_files();  // the usual soft limit of 1024 is too small for a cluster
    address_.key = random_token();
    if (launch.size > 1) {
      reception_ = std::make_unique<Reception>(launch.local_size == launch.size, address_, launch.size,
                                               connections_of(launch), host_name());
      file_ = std::make_unique<RendezvousFile>(plan.folder, job_name(), address_);
    }
    collector_.connected(0, host_name(), now_s());
    supervisor_.command({MessageType::address, 0, 0, to_text(address_)});
  }
  CollectorLoop(const CollectorLoop&) = delete;
  CollectorLoop& operator=(const CollectorLoop&) = delete;

  int run() {
    while (!collector_.over()) {
      wait(tick_ms);
      if (const int signal = take_signal(watch_.signals); signal != 0) collector_.stop(signal, now_s());
      supervisor_.tend();
      welcome_pending();
      connections_.serve(now_s(), events_);
      tend();
    }
    supervisor_.kill_worker();
    if (collector_.lost_a_host() || (code_in_file_ && !collector_.in_order())) end_launcher();
    say_farewell();
    return code();
  }

 private:
  /// Open MPI's launcher takes 3 s to end a job of which a process leaves with another code than 0.
  int code() const {
    constexpr int most_of_verdicts = 3;
    const bool quiet = code_in_file_ && controller_->code_is_in_file() && collector_.in_order() &&
                       collector_.code() <= most_of_verdicts;
    return quiet ? 0 : collector_.code();
  }

  void send(int rank, const Message& message) {
    if (rank == 0)
      supervisor_.command(message);
    else
      connections_.send(rank, message);
  }

  /// It visits every rank: messages of thousands of ranks must not start it thousands of times a second.
  void tend() {
    const double now = now_s();
    if (now < tend_at_s_) return;
    collector_.tend(now);
    tend_at_s_ = now + 1e-6 * connections_.ranks();
    if (!reception_ || (file_ && !collector_.everyone_connected())) return;
    // When all have come, it listens only for ranks whose relay is lost.
    if (!connections_.expects_more(now))
      reception_->close();
    else if (!reception_->listening())
      reception_->listen_again();
    file_.reset();
  }

  void wait(int ms) {
    fds_.clear();
    const auto watch = [this](int fd, short events) {
      if (fd >= 0) fds_.push_back({fd, events, 0});
    };
    watch(watch_.signals, POLLIN);
    watch(supervisor_.link_fd(), supervisor_.link_events());
    if (reception_) reception_->watch(fds_);
    watch(connections_.fd(), POLLIN);
    poll(fds_.data(), fds_.size(), ms);
  }

  void welcome_pending() {
    if (!reception_) return;
    reception_->serve(now_s(), [this](int rank, const std::string& host, Stream stream) {
      connections_.add(rank, host, std::move(stream));
    });
  }

  void say_farewell() {
    for (int rank = 1; rank < connections_.ranks(); ++rank)
      connections_.send(rank, {MessageType::exit, -1, code(), ""});
    events_ = {[](int, const std::string&) {}, [](const Message&) {}, [](int) {}};
    clean_up_after(plan_, supervisor_,
                   watch_);  // now: a launcher that was stopped kills this process after 1 s
    for (const double begin = now_s(); connections_.open_count() > 0 && now_s() - begin < farewell_s;) {
      wait(tick_ms / 10);
      connections_.serve(now_s(), events_);
    }
  }

  const SupervisorPlan& plan_;
  const Watch& watch_;
  const bool code_in_file_;
  std::unique_ptr<Controller> controller_;
  Address address_;
  std::unique_ptr<Reception> reception_;
  std::unique_ptr<RendezvousFile> file_;
  Connections connections_;
  double tend_at_s_ = 0;
  std::vector<pollfd> fds_;
  Collector collector_;
  Connections::Events events_ = {
      [this](int rank, const std::string& host) { collector_.connected(rank, host, now_s()); },
      [this](const Message& m) { collector_.handle(m, now_s()); },
      [this](int rank) { collector_.disconnected(rank, now_s()); }};
  Supervisor supervisor_;
};

}  // namespace

int collector_loop(const SupervisorPlan& plan, const LaunchEnvironment& launch, const Watch& watch) {
  return CollectorLoop(plan, launch, watch).run();
}

}  // namespace assay::supervisor
