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
#include "guard/loops.hpp"
#include "guard/rendezvous.hpp"

namespace assay::guard {
namespace {

constexpr int guardian_tick_ms = 100;
constexpr unsigned unacknowledged_ms = 8000;

/// Finds the collector: tries all its addresses at once and keeps the first that answers with the token.
class Search {
 public:
  Search(std::string folder, int rank, int size) : folder_(std::move(folder)), job_(job_name()), rank_(rank), size_(size) {}

  /// One round; `told` is the address as MPI told it, or empty. An open stream when found.
  Stream round(const std::string& told, double now) {
    if (tries_.empty() && now >= next_s_) {
      next_s_ = now + 0.2;
      auto address = told.empty() ? RendezvousFile::read(folder_, job_) : address_from(told);
      if (address) begin(*address, now);
    }
    for (Stream& s : tries_)
      if (answered(s)) {
        Stream found = std::move(s);
        tries_.clear();
        return found;
      }
    std::erase_if(tries_, [](const Stream& s) { return !s.open(); });
    if (now - begun_s_ > 2.0) tries_.clear();
    return Stream();
  }

 private:
  void begin(const Address& address, double now) {
    answer_ = address.answer;
    begun_s_ = now;
    for (const auto& host : address.hosts) {
      const int fd = start_connect(host, address.port);
      if (fd < 0) continue;
      tries_.emplace_back(fd, Stream::small_text);
      tries_.back().queue({MessageType::hello, rank_, size_, address.proof + host_name()});
    }
  }

  bool answered(Stream& s) {
    pollfd p{s.fd(), static_cast<short>(POLLIN | (s.wants_out() ? POLLOUT : 0)), 0};
    if (poll(&p, 1, 0) <= 0) return false;
    try {
      if ((p.revents & (POLLERR | POLLHUP)) != 0 || !s.pump_out() || !s.pump_in()) {
        s.close();
        return false;
      }
      const auto message = s.take();
      if (!message) return false;
      if (message->type == MessageType::welcome && message->text == answer_) return true;
      s.close();
    } catch (const Error&) {
      s.close();  // somebody else listens there
    }
    return false;
  }

  std::string folder_, job_, answer_;
  int rank_, size_;
  std::vector<Stream> tries_;
  double next_s_ = 0, begun_s_ = 0;
};

class GuardianLoop {
 public:
  GuardianLoop(const GuardPlan& plan, const LaunchEnvironment& launch, const Watch& watch)
      : plan_(plan),
        rank_(launch.rank),
        watch_(watch),
        guardian_(watch.worker, watch.link, watch.board, launch.rank, [this](const Message& m) { up(m); }),
        search_(plan.folder, launch.rank, launch.size) {}

  int run() {
    for (;;) {
      wait();
      if (const int signal = take_signal(watch_.signals); signal != 0) asked_to_end(signal);
      guardian_.tend();
      if (!collector_.open()) {
        if (met_) return alone();
        find();
        if (!collector_.open() && guardian_.worker_ended()) return guardian_.own_code();
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
    if (guardian_.link_fd() >= 0)
      fds.push_back({guardian_.link_fd(), static_cast<short>(POLLIN | (guardian_.wants_out() ? POLLOUT : 0)), 0});
    if (collector_.open())
      fds.push_back({collector_.fd(), static_cast<short>(POLLIN | (collector_.wants_out() ? POLLOUT : 0)), 0});
    poll(fds.data(), fds.size(), collector_.open() ? guardian_tick_ms : guardian_tick_ms / 4);
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
    collector_ = search_.round(guardian_.address(), now_s());
    if (!collector_.open()) return;
    met_ = true;
    collector_.allow_large();
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
          guardian_.kill_worker();
          return message->number;
        }
        guardian_.command(*message);
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
      guardian_.kill_worker();
  }

  /// The collector was there and is gone without having said how the run ended.
  int alone() {
    guardian_.kill_worker();
    if (rank_ == 1) std::fprintf(stderr, "assay: rank 0's guardian is gone; %s\n", plan_.without_collector.c_str());
    return 3;
  }

  const GuardPlan& plan_;
  int rank_;
  const Watch& watch_;
  Stream collector_;
  Guardian guardian_;
  Search search_;
  std::vector<Message> unsaid_;
  bool met_ = false;
};

}  // namespace

int guardian_loop(const GuardPlan& plan, const LaunchEnvironment& launch, const Watch& watch) {
  return GuardianLoop(plan, launch, watch).run();
}

}  // namespace assay::guard
