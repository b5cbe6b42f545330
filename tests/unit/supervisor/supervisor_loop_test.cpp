// SPDX-License-Identifier: Apache-2.0
// The loop of a supervisor that has not met the collector.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "supervisor/connections.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/reception.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;

/// Rank 1 of two nodes of a rank each, without a shared folder.
class LoneSupervisor : public ::testing::Test {
 protected:
  LoneSupervisor() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link = std::make_unique<WorkerLink>(ends[1], *heartbeat);
    plan.folder = folder.path();
    launch.rank = 1;
    launch.size = 2;
    launch.local_size = 1;
  }
  Watch watch(pid_t worker) { return {worker, ends[0], -1, *heartbeat}; }

  TemporaryFolder folder;
  SupervisorPlan plan;
  LaunchEnvironment launch;
  SharedHeartbeat heartbeat;
  int ends[2] = {-1, -1};
  std::unique_ptr<WorkerLink> link;
};

TEST_F(LoneSupervisor, ReportsAnErrorOfItsWorkerToACollectorThatItFindsLater) {
  Address address;
  address.key = random_token();
  Reception reception(true, address, 2, 1, "node0");
  Connections connections(2);
  const pid_t worker = fork();
  if (worker == 0) _exit(4);
  link->connect(to_text(address));
  link->bye(4);
  std::vector<int> byes;
  std::atomic<bool> over{false};
  std::thread collector([&] {
    usleep(300'000);
    const Connections::Events events{[](int, const std::string&) {},
                                     [&](const Message& m) {
                                       if (m.type != MessageType::bye) return;
                                       byes.push_back(m.number);
                                       connections.send(1, {MessageType::exit, -1, 4, ""});
                                     },
                                     [](int) {}};
    for (const double begin_s = now_s(); !over && now_s() - begin_s < 20; usleep(5000)) {
      reception.serve(now_s(), [&](int rank, const std::string& host, Stream stream) {
        connections.add(rank, host, std::move(stream));
      });
      connections.serve(now_s(), events);
    }
  });
  EXPECT_EQ(supervisor_loop(plan, launch, watch(worker), meeting_s(2)), 4);
  over = true;
  collector.join();
  EXPECT_THAT(byes, ElementsAre(4));
}

TEST_F(LoneSupervisor, EndsItsWorkerAndItselfIfItNeverMeetsTheCollector) {
  const pid_t worker = fork();
  if (worker == 0) {
    for (;;) pause();
  }
  const double begin_s = now_s();
  EXPECT_EQ(supervisor_loop(plan, launch, watch(worker), 0.5), 3);
  EXPECT_GE(now_s() - begin_s, 0.5);
  int status = 0;
  ASSERT_EQ(waitpid(worker, &status, 0), worker);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

}  // namespace
}  // namespace assay::supervisor
