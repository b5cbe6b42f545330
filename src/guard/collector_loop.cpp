// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <list>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "guard/collector.hpp"
#include "guard/lines.hpp"
#include "guard/loops.hpp"
#include "guard/rendezvous.hpp"

namespace assay::guard {
namespace {

constexpr int tick_ms = 100;
/// Strangers that connect and say nothing are dropped after so long; more than so many at a time are not let in.
constexpr double introduce_s = 5.0;
constexpr std::size_t most_strangers = 4096;
/// For the last orders to be taken before this process, and with it the launcher's job, ends.
constexpr double farewell_s = 1.0;

/// One descriptor per guardian: the usual soft limit of 1024 is too small for a cluster.
void allow_many_files() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Open MPI's launcher waits a quarter of an hour for a host that it cannot reach. All is on disk by now. At
/// a first signal it asks its daemons to end, at a second it goes at once. Both come before any rank has
/// left: a signal while it ends a job because a rank left with a code other than 0 makes Open MPI 4.1 crash.
void end_launcher() {
  const auto parent = read_text("/proc/" + std::to_string(getppid()) + "/comm");
  if (parent != "mpirun" && parent != "orterun" && parent != "prterun" && parent != "orted" &&
      parent != "prted")
    return;
  std::fprintf(stderr, "assay: ending %s, which cannot reach every host any more\n", parent->c_str());
  const pid_t launcher = getppid();
  // It may hang in its own clean-up; nobody is left to wait for it.
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
  CollectorLoop(const GuardPlan& plan, const LaunchEnvironment& launch, const Watch& watch)
      : watch_(watch),
        keeper_(plan.make_keeper()),
        lines_(launch.size),
        collector_(
            launch.size, *keeper_, [this](int rank, const Message& m) { send(rank, m); }, print, now_s()),
        guardian_(watch.worker, watch.link, watch.board, 0,
                  [this](const Message& m) { collector_.handle(m, now_s()); }) {
    allow_many_files();
    address_.proof = random_token();
    address_.answer = random_token();
    if (launch.size > 1) {
      listening_ = listen_on(launch.local_size == launch.size, address_);
      file_ = std::make_unique<RendezvousFile>(plan.folder, job_name(), address_);
    }
    collector_.connected(0, host_name(), now_s());
    guardian_.command({MessageType::address, 0, 0, to_text(address_)});
  }
  ~CollectorLoop() {
    if (listening_ >= 0) close(listening_);
  }
  CollectorLoop(const CollectorLoop&) = delete;
  CollectorLoop& operator=(const CollectorLoop&) = delete;

  int run() {
    while (!collector_.over()) {
      wait(tick_ms);
      if (const int signal = take_signal(watch_.signals); signal != 0) collector_.stop(signal, now_s());
      guardian_.tend();
      welcome_strangers();
      lines_.serve([this](const Message& m) { collector_.handle(m, now_s()); },
                   [this](int rank) { collector_.disconnected(rank, now_s()); });
      tend();
      if (file_ && collector_.everyone_connected()) file_.reset();
    }
    guardian_.kill_worker();
    if (collector_.lost_a_host()) end_launcher();
    say_farewell();
    return collector_.code();
  }

 private:
  struct Stranger {
    Stream stream;
    double since_s;
  };

  void send(int rank, const Message& message) {
    if (rank == 0)
      guardian_.command(message);
    else
      lines_.send(rank, message);
  }

  /// It looks at every rank; words of thousands must not make it do so thousands of times a second.
  void tend() {
    const double now = now_s();
    if (now < tend_at_s_) return;
    collector_.tend(now);
    tend_at_s_ = now + 1e-6 * lines_.ranks();
  }

  void wait(int ms) {
    fds_.clear();
    const auto watch = [this](int fd, bool out) {
      if (fd >= 0) fds_.push_back({fd, static_cast<short>(POLLIN | (out ? POLLOUT : 0)), 0});
    };
    watch(watch_.signals, false);
    watch(guardian_.link_fd(), guardian_.wants_out());
    watch(listening_, false);
    for (const Stranger& s : strangers_) watch(s.stream.fd(), s.stream.wants_out());
    watch(lines_.fd(), false);
    poll(fds_.data(), fds_.size(), ms);
  }

  void welcome_strangers() {
    for (int fd; listening_ >= 0 && strangers_.size() < most_strangers && (fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      strangers_.push_back({Stream(fd, Stream::small_text), now_s()});
    }
    for (Stranger& s : strangers_) introduce(s);
    std::erase_if(strangers_, [](const Stranger& s) { return !s.stream.open(); });
  }

  void introduce(Stranger& stranger) {
    try {
      const bool alive = stranger.stream.pump_in();
      const auto hello = stranger.stream.take();
      if (!hello) {
        if (!alive || now_s() - stranger.since_s > introduce_s) stranger.stream.close();
        return;
      }
      const std::size_t proof = address_.proof.size();
      const bool ours = hello->type == MessageType::hello && hello->text.size() > proof && hello->rank > 0 &&
                        hello->rank < lines_.ranks() && hello->number == lines_.ranks() &&
                        hello->text.substr(0, proof) == address_.proof;
      if (!ours || lines_.open(hello->rank)) {
        stranger.stream.close();
        return;
      }
      stranger.stream.allow_large();
      lines_.connect(hello->rank, std::move(stranger.stream));
      lines_.send(hello->rank, {MessageType::welcome, hello->rank, 0, address_.answer});
      collector_.connected(hello->rank, hello->text.substr(proof), now_s());
    } catch (const Error&) {
      stranger.stream.close();
    }
  }

  void say_farewell() {
    for (int rank = 1; rank < lines_.ranks(); ++rank) lines_.send(rank, {MessageType::exit, -1, collector_.code(), ""});
    for (const double begin = now_s(); lines_.any_open() && now_s() - begin < farewell_s;) {
      wait(tick_ms / 10);
      lines_.serve([](const Message&) {}, [](int) {});
    }
  }

  const Watch& watch_;
  std::unique_ptr<Keeper> keeper_;
  Address address_;
  int listening_ = -1;
  std::unique_ptr<RendezvousFile> file_;
  std::list<Stranger> strangers_;
  Lines lines_;
  double tend_at_s_ = 0;
  std::vector<pollfd> fds_;
  Collector collector_;
  Guardian guardian_;
};

}  // namespace

int collector_loop(const GuardPlan& plan, const LaunchEnvironment& launch, const Watch& watch) {
  return CollectorLoop(plan, launch, watch).run();
}

}  // namespace assay::guard
