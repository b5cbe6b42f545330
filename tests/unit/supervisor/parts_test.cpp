// SPDX-License-Identifier: Apache-2.0
// A record longer than any message, from a worker to the collector by real sockets; what a supervisor reports
// of its worker.
#include <malloc.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "base/bounds.hpp"
#include "base/clock.hpp"
#include "collector_rig.hpp"
#include "supervisor/connections.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/reception.hpp"
#include "supervisor/route.hpp"
#include "supervisor/supervisor.hpp"
#include "supervisor/worker_link.hpp"

namespace assay::supervisor {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// Bytes that are allocated. Sanitizers count their own: there it is 0.
std::size_t allocated() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::string text_of(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i / 7 + i / 65536);
  return text;
}

/// Two nodes of two ranks. Rank 3 has a worker and its supervisor; the supervisor of rank 2 is its relay.
class Parts : public CollectorTest {
 protected:
  Parts() : connections(4) {
    address.key = random_token();
    reception = std::make_unique<Reception>(true, address, 4, 2, host(0));
    for (int rank = 1; rank < 4; ++rank)
      routes.push_back(std::make_unique<Route>("", Place{rank, 4, 2, host(rank)}));
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link = std::make_unique<WorkerLink>(ends[1], heartbeat);
    constexpr pid_t nobody = 0x7ffffff0;  // no process is ended here
    supervisor = std::make_unique<Supervisor>(nobody, ends[0], heartbeat, 3,
                                              [this](const Message& m) { routes[2]->send(m); });
    collector.connected(0, host(0), now);
  }
  static std::string host(int rank) {
    return "node" + std::to_string(rank / 2) + "-" + std::to_string(getpid());
  }
  void step(bool collects) {
    now += 0.01;
    if (collects) {
      reception->serve(now, [this](int rank, const std::string& name, Stream stream) {
        connections.add(rank, name, std::move(stream));
      });
      connections.serve(now, events);
    }
    if (!routes[1]->joined()) {
      routes[1]->serve(to_text(address), now, [](const Message&) {});
      return;
    }
    supervisor->hold(routes[2]->behind());
    supervisor->tend();
    for (auto& route : routes) route->serve(to_text(address), now, [](const Message&) {});
  }
  template <typename Done>
  bool serve(const Done& done) {
    for (int i = 0; i < 100'000 && !done(); ++i) step(true);
    return done();
  }

  Address address;
  int ends[2] = {-1, -1};
  Connections connections;
  Connections::Events events = {
      [this](int rank, const std::string& name) { collector.connected(rank, name, now); },
      [this](const Message& m) { collector.handle(m, now); },
      [this](int rank) { collector.disconnected(rank, now); }};
  std::unique_ptr<Reception> reception;
  std::vector<std::unique_ptr<Route>> routes;
  SharedHeartbeat shared;
  Heartbeat& heartbeat = *shared;
  std::unique_ptr<WorkerLink> link;
  std::unique_ptr<Supervisor> supervisor;
};

TEST_F(Parts, ARecordOfAnyLengthArrivesWholeAndWaitsForTheCollector) {
  ASSERT_TRUE(serve([&] { return collector.everyone_connected(); }));
  begin();
  ASSERT_FALSE(routes[1]->relays_nothing());
  const std::string text = text_of(80 * mib + 5);
  std::string record = text;
  const std::size_t before = allocated();
  std::thread worker([&] { link->record(0, std::move(record)); });
  for (int i = 0; i < 50; ++i) step(true);
  const auto handed_in = [&] { return heartbeat.calls.load() * part_bytes; };
  std::uint64_t last = ~std::uint64_t{0};
  for (int i = 0; i < 200 || std::exchange(last, handed_in()) != handed_in();
       ++i) {  // the collector does not run
    step(false);
    usleep(1000);
  }
  EXPECT_LT(handed_in(), text.size() - 8 * mib) << "the worker waits";
  EXPECT_LT(allocated(), before + 16 * mib);
  ASSERT_TRUE(serve([&] { return controller.taken.contains(3); }));
  worker.join();
  EXPECT_TRUE(controller.taken[3] == text);
  EXPECT_TRUE(controller.losses.empty());
  controller.taken.clear();
  EXPECT_LT(allocated(), before + 8 * mib) << "nothing of it stays";
}

TEST_F(Parts, AnEndlessRecordLosesItsRank) {
  begin();
  const Message part{MessageType::part, 3, 0, std::string(16 * mib, 'x')};
  for (std::size_t bytes = 0; bytes <= most_text_bytes; bytes += part.text.size())
    collector.handle(part, now);
  EXPECT_THAT(controller.losses, ::testing::ElementsAre(::testing::HasSubstr("sent more than 512 MiB")));
}

/// Processes that use one core all the time, until the end of the test.
class OneCore {
 public:
  OneCore() { sched_getaffinity(0, sizeof all_, &all_); }
  ~OneCore() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  pid_t start() {
    int first = 0;
    while (!CPU_ISSET(first, &all_)) ++first;
    const pid_t pid = fork();
    if (pid == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(first, &one);
      sched_setaffinity(0, sizeof one, &one);
      for (volatile unsigned n = 0;;) n = n + 1;
    }
    pids_.push_back(pid);
    return pid;
  }

 private:
  cpu_set_t all_;
  std::vector<pid_t> pids_;
};

TEST(Status, AWorkerThatComputesWithoutACoreIsNotIdle) {
  OneCore core;
  const pid_t worker = core.start();
  for (int i = 0; i < 3; ++i) core.start();
  for (const Call call : {Call::none, Call::barrier}) {
    SharedHeartbeat heartbeat;
    heartbeat->call = call;
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const double begin_s = now_s();
    Snapshot last;
    double at_s = begin_s;
    Supervisor supervisor(worker, ends[0], *heartbeat, 0, [&](const Message& m) {
      if (m.type == MessageType::status && from_text(m.text, last)) at_s = now_s();
    });
    while (now_s() - begin_s < 2.5) {
      supervisor.tend();
      usleep(50'000);
    }
    const double share = last.idle_s / (at_s - begin_s);
    if (call == Call::none) {
      EXPECT_LT(share, 0.7) << "it has a quarter of the core at most";
    } else {
      EXPECT_GT(share, 0.9) << "it waits for others, whatever it does meanwhile";
    }
    close(ends[1]);
  }
}

TEST(Touch, ADirectoryThatAnswersIsToldAndASilentOneIsNot) {
  const pid_t worker = fork();
  if (worker == 0) {
    for (;;) pause();
  }
  SharedHeartbeat heartbeat;
  int ends[2], touched = 0;
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  {
    Supervisor supervisor(
        worker, ends[0], *heartbeat, 0,
        [&](const Message& m) { touched += m.type == MessageType::touched ? 1 : 0; },
        [](const std::string& directory) {
          while (directory == "/silent") pause();
        });
    const auto ask = [&](const char* directory, double seconds) {
      supervisor.command({MessageType::touch, -1, 0, directory});
      for (const double begin_s = now_s(); touched == 0 && now_s() - begin_s < seconds; usleep(1000))
        supervisor.tend();
      return std::exchange(touched, 0);
    };
    EXPECT_EQ(ask("/silent", 0.5), 0);
    EXPECT_EQ(ask("/answers", 20), 1) << "the silent one does not hold it up";
  }
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  close(ends[1]);
}

TEST(Wire, ABusyLineKeepsWhatIsUnderWayOnly) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  Stream a(ends[0]), b(ends[1]);
  const Message message{MessageType::part, 1, 0, text_of(part_bytes)};
  const std::size_t before = allocated();
  for (int i = 0; i < 400; ++i) {
    while (a.unsent_bytes() < 2 * part_bytes) a.queue(message);  // never empty
    a.pump_out();
    b.pump_in();
    while (const auto taken = b.take()) EXPECT_TRUE(taken->text == message.text);
  }
  EXPECT_LT(allocated(), before + 4 * mib);
}

}  // namespace
}  // namespace assay::supervisor
