// SPDX-License-Identifier: Apache-2.0
// What leading a run costs rank 0's machine when there are many ranks: the real collector with its sockets in
// a process of its own, and the other ends of its connections in this one: of the relay of each node, and of
// each supervisor of its own node. They say hello, report for each rank as often as supervisors do and hand
// in a record of each rank for each case.
//   assay_collector_scale RANKS SECONDS [RANKS_PER_NODE]
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "base/bounds.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/rendezvous.hpp"
#include "supervisor/supervisor.hpp"

namespace {

using namespace assay;
using namespace assay::supervisor;

double cpu_s(int who) {
  rusage used{};
  getrusage(who, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// One long case, in which ranks only report, then short ones, each as long as it takes to hand out and
/// collect.
class Timing final : public Controller {
 public:
  explicit Timing(double long_s) : long_s_(long_s) {}
  void start(const std::string&) override { started_ = true; }
  void start_without_plan(const std::vector<std::string>&) override {}
  bool started() const noexcept override { return started_; }
  void ready(const std::string&) override {
    std::printf("all ready after %.2f s, %.2f s of CPU\n", now_s() - born_s_, cpu_s(RUSAGE_SELF));
  }
  Step next() override {
    begun_s_ = now_s();
    begun_cpu_s_ = cpu_s(RUSAGE_SELF);
    if (case_ >= short_cases) return {};
    return {case_++, 600.0};
  }
  void take(int, const std::string&) override {}
  void store(int index, const std::vector<int>&) override {
    const double wall = now_s() - begun_s_, cpu = cpu_s(RUSAGE_SELF) - begun_cpu_s_;
    if (index == 0)
      std::printf("while a case runs: %.2f %% of a core (%.1f s)\n", 100 * cpu / wall, wall);
    else
      turnovers_.push_back(wall), cpus_.push_back(cpu);
  }
  std::vector<int> lost(const Loss& loss, int) override {
    std::printf("LOST %s\n", loss.text.c_str());
    return {};
  }
  void event(const std::string&, const std::string&, int) noexcept override {}
  void show_alive() noexcept override {}
  int finish(const std::string& why, int) override {
    started_ = false;
    std::sort(turnovers_.begin(), turnovers_.end());
    std::sort(cpus_.begin(), cpus_.end());
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    if (!turnovers_.empty())
      std::printf("a case handed out and collected: median %.1f ms (%.1f ms of CPU), worst %.1f ms\n",
                  1e3 * turnovers_[turnovers_.size() / 2], 1e3 * cpus_[cpus_.size() / 2],
                  1e3 * turnovers_.back());
    std::printf("memory %.0f MB, %td open files\n", 1e-3 * static_cast<double>(used.ru_maxrss),
                std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
    return why.empty() ? 0 : 3;
  }
  void discard() noexcept override {}
  std::string complaint(int) const override { return {}; }
  bool inside_nodes(int) const override { return false; }
  std::string case_name(int index) const override { return "case " + std::to_string(index); }
  double phase_deadline_s(unsigned, std::optional<double>) const override { return 300; }
  double silence_s() const override { return 15; }
  double standstill_s() const override { return 8; }
  std::string directories(int) const override { return {}; }
  std::string shared_path(int) const override { return {}; }
  double server_standstill_s() const override { return 60; }
  void stalled(int, const std::string&) noexcept override {}
  double run_deadline_s() const override { return long_s_ + 600; }

 private:
  static constexpr int short_cases = 21;
  double long_s_, born_s_ = now_s(), begun_s_ = 0, begun_cpu_s_ = 0;
  bool started_ = false;
  int case_ = 0;
  std::vector<double> turnovers_, cpus_;
};

/// One connection, and the ranks that it reaches.
struct Client {
  Stream line;
  int first = 0, ranks = 1;
  int left = 0;
  double asked_at_s = 0;  ///< for an answer, which may be lost where too many connections wait; 0: not yet
  bool welcome = false;
  double next_status_s = 0;
};
struct Rank {
  std::size_t client = 0;
  std::uint32_t received = 0;
  bool joined = false;
};

/// The relays of all nodes, the supervisors of the collector's own node, and rank 0's worker (client 0).
class Clients {
 public:
  Clients(int ranks, int per_node, double long_s, int worker_line)
      : per_node_(per_node),
        long_s_(long_s),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        ranks_(static_cast<std::size_t>(ranks)) {
    for (int first = 0; first < ranks; first += clients_.back().ranks) {
      Client& c = clients_.emplace_back();
      c.first = first;
      c.ranks = first < per_node ? 1 : std::min(per_node, ranks - first);
      for (int rank = first; rank < first + c.ranks; ++rank) of(rank).client = clients_.size() - 1;
    }
    clients_[0].line = Stream(worker_line);
    add(0);
    clients_[0].line.queue({MessageType::start, 0, 0, ""});
    clients_[0].line.pump_out();
  }
  ~Clients() { close(epoll_); }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  /// Until the collector has said goodbye to all.
  void run() {
    const std::string where = to_text(read(*heartbeat_));
    const double begin = now_s();
    for (std::size_t i = 0; i < clients_.size(); ++i)  // nodes do not report in step
      clients_[i].next_status_s =
          begin + status_every_s * static_cast<double>(i) / static_cast<double>(clients_.size());
    std::vector<epoll_event> ready(512);
    while (left_ < clients_.size()) {
      const int n = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), 1);
      for (int i = 0; i < n; ++i) serve(ready[static_cast<std::size_t>(i)].data.u64);
      const double now = now_s();
      ask_again(now);
      for (std::size_t i = 1; i < clients_.size(); ++i) report(clients_[i], where, now);
      if (case_ == 0 && now > long_until_s_) {
        case_ = -1;
        for (int rank = 0; rank < size(); ++rank) hand_in(rank, 0);
      }
    }
  }

 private:
  /// A relay sends the reports of its node together.
  void report(Client& c, const std::string& where, double now) {
    if (now < c.next_status_s) return;
    c.next_status_s += status_every_s;
    for (int rank = c.first; rank < c.first + c.ranks; ++rank)
      if (of(rank).joined) c.line.queue({MessageType::status, rank, 0, where, 0, of(rank).received});
    c.line.pump_out();
  }
  void meet(const Address& address) {
    address_ = address;
    for (std::size_t i = 1; i < clients_.size(); ++i) ask(i, now_s());
  }
  void ask(std::size_t i, double now) {
    clients_[i].line = Stream(start_connect(address_.hosts.front(), address_.port));
    clients_[i].asked_at_s = now;
    add(i);
  }
  void ask_again(double now) {
    constexpr double patience_s = 2;
    if (now < ask_again_at_s_) return;
    ask_again_at_s_ = now + 0.1;
    for (std::size_t i = 1; i < clients_.size(); ++i)
      if (const Client& c = clients_[i]; !c.welcome && c.asked_at_s > 0 && now - c.asked_at_s > patience_s)
        ask(i, now);
  }
  void add(std::size_t i) {
    epoll_event e{};
    e.events = EPOLLIN | EPOLLOUT | EPOLLET;
    e.data.u64 = i;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_[i].line.fd(), &e);
  }
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  std::string host(int rank) const { return "host" + std::to_string(rank / per_node_); }
  void say(const Message& m) {
    Stream& line = clients_[of(m.rank).client].line;
    line.queue(m);
    line.pump_out();
  }
  void hand_in(int rank, int number) {
    say({MessageType::record, rank, number, record_, 0, of(rank).received});
  }

  void serve(std::size_t i) {
    Client& c = clients_[i];
    if (!c.line.open()) return;
    const bool alive = c.line.pump_out() && c.line.pump_in();
    while (const auto m = c.line.take()) {
      const int rank = i == 0 ? 0 : m->rank;
      of(rank).received = std::max(of(rank).received, m->sequence);
      if (m->type == MessageType::address) {
        meet(address_from(m->text).value());
      } else if (m->type == MessageType::challenge) {
        c.line.queue(hello(address_.key, m->text, random_token(), c.first, size(), host(c.first)));
        c.line.pump_out();
      } else if (m->type == MessageType::welcome) {
        c.welcome = true;
        for (int one = c.first; one < c.first + c.ranks; ++one) say({MessageType::join, one, 1, host(one)});
      } else if (m->type == MessageType::joined || m->type == MessageType::started) {
        of(rank).joined = true;
        say({MessageType::ready, rank, 0, ""});
      } else if (m->type == MessageType::step && m->number > 0) {
        hand_in(rank, m->number);
      } else if (m->type == MessageType::step && m->number == 0 && case_ < 0) {
        case_ = 0;
        long_until_s_ = now_s() + long_s_;
      } else if (m->type == MessageType::step && m->number == no_more_cases) {
        say({MessageType::bye, rank, 0, ""});
        if (i > 0)
          say({MessageType::done, rank, 0, ""});
        else
          c.left = c.ranks;
      } else if (m->type == MessageType::exit) {
        ++c.left;
      }
    }
    if (alive && c.left < c.ranks) return;
    c.line.close();
    if (i == 0 || c.welcome) ++left_;
  }

  int per_node_;
  double long_s_, long_until_s_ = 0;
  int epoll_;
  std::vector<Client> clients_;
  std::vector<Rank> ranks_;
  SharedHeartbeat heartbeat_;
  Address address_;
  double ask_again_at_s_ = 0;
  std::string record_ = std::string(2000, 'r');
  std::size_t left_ = 0;
  int case_ = -1;
};

int lead(const LaunchEnvironment& launch, double long_s, int line, pid_t worker) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  SharedHeartbeat heartbeat;
  const Watch watch{worker, line, signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC), *heartbeat};
  SupervisorPlan plan;
  plan.make_controller = [long_s] { return std::make_unique<Timing>(long_s); };
  return collector_loop(plan, launch, watch);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const double long_s = argc > 2 ? std::atof(argv[2]) : 10;
  const int per_node = argc > 3 ? std::atoi(argv[3]) : 8;
  if (ranks < 2 || per_node < 1) {
    std::fprintf(stderr, "usage: assay_collector_scale RANKS [SECONDS [RANKS_PER_NODE]]; at least 2 ranks\n");
    return 4;
  }
  LaunchEnvironment launch;
  launch.rank = launch.local_rank = 0;
  launch.size = ranks;
  launch.local_size = std::min(ranks, per_node);
  try {
    require_open_files(launch);
    raise_open_files();
  } catch (const Error& e) {
    std::fprintf(stderr, "assay_collector_scale: %s\n", e.what());
    return 4;
  }
  int line[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) != 0) return 3;
  setvbuf(stdout, nullptr, _IONBF, 0);
  const pid_t leader = fork();
  if (leader == 0) {
    close(line[0]);
    const pid_t worker = fork();  // its place; what it would say comes over the line
    if (worker == 0) {
      close(line[1]);
      pause();
      _exit(0);
    }
    _exit(lead(launch, long_s, line[1], worker));
  }
  close(line[1]);
  Clients clients(ranks, per_node, long_s, line[0]);
  clients.run();
  int status = 0;
  waitpid(leader, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
