// SPDX-License-Identifier: Apache-2.0
// Nodes of made supervisors with real sockets, in a time that the test makes: how many connections the
// collector has, and what arrives when relays end, stop or do not answer.
#include "supervisor/route.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bounds.hpp"
#include "base/error.hpp"
#include "supervisor/connections.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/reception.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

constexpr int per_node = 8;

class Tree {
 public:
  explicit Tree(int nodes) : ranks_(nodes * per_node), connections(ranks_) {
    address_.key = random_token();
    reception = std::make_unique<Reception>(true, address_, ranks_, ranks_ - 1, host(0));
    for (int rank = 0; rank < ranks_; ++rank)
      routes.push_back(std::make_unique<Route>("", Place{rank, ranks_, per_node, host(rank)}));
    routes[0].reset();
    down.resize(routes.size());
    up.resize(routes.size());
    stopped.resize(routes.size());
  }
  static std::string host(int rank) {
    return "node" + std::to_string(rank / per_node) + "-" + std::to_string(getpid());
  }

  /// Until `done` or for so long, in made time.
  template <typename Done>
  bool serve(double seconds, const Done& done) {
    for (const double end = now_ + seconds; now_ < end; now_ += 0.02) {
      if (reception && now_ > blocked_until_s_) step_collector();
      const bool report = ++steps_ % 25 == 0;  // twice a second, as supervisors do
      for (std::size_t rank = 1; rank < routes.size(); ++rank) {
        if (!routes[rank] || stopped[rank]) continue;
        if (report && report_) routes[rank]->send({MessageType::status, 0, 0, ""});
        routes[rank]->serve(to_text(address_), now_,
                            [&](const Message& m) { down[rank].push_back(m.number); });
      }
      if (done()) return true;
    }
    return false;
  }
  void serve(double seconds) {
    serve(seconds, [] { return false; });
  }
  /// Without the reports that all make.
  void serve_quietly(double seconds) {
    report_ = false;
    serve(seconds);
    report_ = true;
  }
  bool start() {
    return serve(60, [this] { return joined() == ranks_ - 1; });
  }
  int joined() const {
    return static_cast<int>(
        std::count_if(routes.begin(), routes.end(), [](const auto& r) { return r && r->joined(); }));
  }
  /// The rank that relays for a node.
  int relay(int node) const {
    for (int rank = node * per_node; rank < (node + 1) * per_node; ++rank)
      if (routes[static_cast<std::size_t>(rank)] && !routes[static_cast<std::size_t>(rank)]->relays_nothing())
        return rank;
    return -1;
  }
  void send_up(int node, int number) {
    for (int rank = node * per_node; rank < (node + 1) * per_node; ++rank)
      if (Route* route = routes[static_cast<std::size_t>(rank)].get())
        route->send({MessageType::record, rank, number, std::string(1000, 'r')});
  }
  void send_down(int number) {
    for (int rank = 1; rank < ranks_; ++rank) connections.send(rank, {MessageType::step, -1, number, ""});
  }
  const std::string& key() const { return address_.key; }
  /// The collector does not run for so long, while the supervisors do: a disk blocks it.
  void block_collector(double seconds) {
    blocked_until_s_ = now_ + seconds;
    serve(seconds + 0.02);
  }
  void stop_collector() {
    reception.reset();
    connections.~Connections();
    new (&connections) Connections(ranks_);
  }
  /// Expects that these arrived once, in order, at and from the ranks of a node, but for one.
  void expect_all(int node, const std::vector<int>& numbers, int but = -1) {
    for (int rank = std::max(1, node * per_node); rank < (node + 1) * per_node; ++rank) {
      if (rank == but) continue;
      EXPECT_EQ(up[static_cast<std::size_t>(rank)], numbers) << rank;
      EXPECT_EQ(down[static_cast<std::size_t>(rank)], numbers) << rank;
    }
  }

  std::vector<int> gone;
  std::vector<std::pair<double, int>> reports;  ///< when, and of which rank
  std::vector<std::vector<int>> up, down;       ///< numbers of messages by rank
  std::vector<bool> stopped;

 private:
  void step_collector() {
    if (!connections.expects_more(now_) && seen_ >= ranks_ - 1)
      reception->close();
    else if (!reception->listening())
      reception->listen_again();
    reception->serve(now_, [this](int rank, const std::string& host, Stream stream) {
      connections.add(rank, host, std::move(stream));
    });
    connections.serve(now_, {[this](int, const std::string&) { ++seen_; },
                             [this](const Message& m) {
                               if (m.type == MessageType::status) {
                                 reports.emplace_back(now_, m.rank);
                                 return;
                               }
                               up[static_cast<std::size_t>(m.rank)].push_back(m.number);
                               EXPECT_EQ(m.text.size(), 1000u);
                             },
                             [this](int rank) { gone.push_back(rank); }});
  }

  Address address_;
  int ranks_, seen_ = 0, steps_ = 0;
  double now_ = 1, blocked_until_s_ = 0;
  bool report_ = true;

 public:
  Connections connections;
  std::unique_ptr<Reception> reception;
  std::vector<std::unique_ptr<Route>> routes;  ///< by rank; rank 0 has none
};

std::vector<int> ranks_of(int node, int but = -1) {
  std::vector<int> ranks(per_node);
  std::iota(ranks.begin(), ranks.end(), node * per_node);
  std::erase(ranks, but);
  return ranks;
}

TEST(Route, ANodeHasOneConnectionToTheCollector) {
  Tree tree(16);
  ASSERT_TRUE(tree.start());
  EXPECT_EQ(tree.connections.open_count(), per_node - 1 + 15) << "its own node's, and one of each other node";
  tree.send_up(0, 1);
  tree.send_up(15, 1);
  tree.send_down(1);
  tree.serve(0.2);
  tree.expect_all(0, {1});
  tree.expect_all(15, {1});
  EXPECT_FALSE(tree.reception->listening());
}

/// Supervisors do not report in step. Read one by one, the reports of 12,500 nodes take more than a core.
TEST(Route, ReportsOfANodeArriveTogether) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  tree.serve_quietly(1);
  tree.reports.clear();
  for (int rank = per_node; rank < 2 * per_node; ++rank) {
    tree.routes[static_cast<std::size_t>(rank)]->send({MessageType::status, rank, 0, ""});
    tree.serve_quietly(0.04);
  }
  tree.serve_quietly(0.5);
  std::map<double, std::set<int>> arrivals;
  for (const auto& [when, rank] : tree.reports) arrivals[when].insert(rank);
  EXPECT_EQ(tree.reports.size(), static_cast<std::size_t>(per_node));
  EXPECT_LE(arrivals.size(), 2u);
}

TEST(Route, AReportComesBeforeWhatIsSaidAfterIt) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  tree.serve_quietly(1);
  const std::size_t last = 2 * per_node - 1;
  tree.reports.clear();
  tree.routes[last]->send({MessageType::status, 0, 0, ""});
  tree.routes[last]->send({MessageType::record, 0, 7, std::string(1000, 'r')});
  EXPECT_TRUE(tree.serve(0.2, [&] { return tree.up[last] == std::vector{7}; }));
  ASSERT_EQ(tree.reports.size(), 1u);
  EXPECT_EQ(tree.reports[0].second, static_cast<int>(last));
}

TEST(Route, AfterTheEndOfARelayAnotherTakesOverAndNothingIsLost) {
  Tree tree(3);
  ASSERT_TRUE(tree.start());
  const int first = tree.relay(2);
  ASSERT_GE(first, 0);
  tree.send_up(2, 1);
  tree.send_down(1);  // nobody reads these before the relay ends
  tree.routes[static_cast<std::size_t>(first)].reset();
  tree.send_up(2, 2);
  tree.serve(0.02);
  tree.send_down(2);
  EXPECT_TRUE(tree.serve(3, [&] { return tree.joined() == 2 * per_node - 1 + per_node - 1; }));
  tree.serve(0.2);
  EXPECT_THAT(tree.gone, ElementsAre(first));
  tree.expect_all(2, {1, 2}, first);
  EXPECT_GE(tree.relay(2), 0);
  EXPECT_EQ(tree.connections.open_count(), per_node - 1 + 2);
  EXPECT_FALSE(tree.reception->listening());
  tree.serve(Connections::grace_s + 1);
  EXPECT_THAT(tree.gone, ElementsAre(first));
}

TEST(Route, AStoppedRelayIsLeftAndMayRunOn) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  const int first = tree.relay(1);
  ASSERT_GE(first, 0);
  tree.stopped[static_cast<std::size_t>(first)] = true;
  tree.send_up(1, 1);
  tree.send_down(1);
  // A host without a report is lost after 6 s in smoke.
  EXPECT_TRUE(tree.serve(4.5, [&] {
    return std::all_of(tree.up.begin() + per_node, tree.up.end(), [&](const auto& taken) {
      return !taken.empty() || &taken == &tree.up[static_cast<std::size_t>(first)];
    });
  }));
  tree.expect_all(1, {1}, first);
  tree.stopped[static_cast<std::size_t>(first)] = false;
  tree.serve(Connections::grace_s + 1);
  tree.send_up(1, 2);
  tree.send_down(2);
  tree.serve(0.2);
  EXPECT_THAT(tree.gone, IsEmpty());
  tree.expect_all(1, {1, 2});
}

TEST(Route, ARelayThatIsLeftAndRunsOnAtOnceLosesNobody) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  const int first = tree.relay(1);
  tree.stopped[static_cast<std::size_t>(first)] = true;
  ASSERT_TRUE(tree.serve(4, [&] { return tree.joined() < 2 * per_node - 1; }));
  tree.stopped[static_cast<std::size_t>(first)] = false;
  tree.serve(5);
  EXPECT_THAT(tree.gone, IsEmpty());
  EXPECT_EQ(tree.joined(), 2 * per_node - 1);
}

TEST(Route, ASupervisorThatEndsIsGoneAtOnceAndAlone) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  const int relay = tree.relay(1), other = relay == 9 ? 10 : 9;
  tree.send_up(1, 1);
  tree.routes[static_cast<std::size_t>(other)].reset();
  tree.serve(0.1);
  EXPECT_THAT(tree.gone, ElementsAre(other));
  EXPECT_THAT(tree.up[static_cast<std::size_t>(other)], ElementsAre(1)) << "what it said before";
}

TEST(Route, ANodeThatEndsIsGoneAfterTheGrace) {
  Tree tree(3);
  ASSERT_TRUE(tree.start());
  const int relay = tree.relay(1);
  for (const int rank : ranks_of(1)) tree.routes[static_cast<std::size_t>(rank)].reset();
  tree.serve(1);
  EXPECT_THAT(tree.gone, ElementsAre(relay));
  tree.serve(5.5);
  EXPECT_THAT(tree.gone, UnorderedElementsAreArray(ranks_of(1)));
}

TEST(Route, WithoutTheCollectorEverySupervisorKnowsAtOnce) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  tree.stop_collector();
  tree.serve(0.2);
  for (std::size_t rank = 1; rank < tree.routes.size(); ++rank)
    EXPECT_TRUE(tree.routes[rank]->lost()) << rank;
}

TEST(Route, AProcessWithoutTheKeyOnTheNodesSocketIsPassedBy) {
  Tree tree(2);
  const Stream other_process(listen_local(node_socket_name(tree.key(), Tree::host(per_node))));
  ASSERT_TRUE(other_process.open());
  EXPECT_TRUE(tree.start());
  EXPECT_EQ(tree.connections.open_count(), 2 * per_node - 1);
}

TEST(Route, ARelayReadsNoMoreWhileTheCollectorIsBehind) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  const auto reception = std::move(tree.reception);  // the collector does not run
  const int relay = tree.relay(1);
  Route& other = *tree.routes[static_cast<std::size_t>(relay == 9 ? 10 : 9)];
  for (int i = 0; i < 30; ++i) other.send({MessageType::record, 0, i, std::string(1 << 20, 'r')});
  tree.serve(5);
  EXPECT_GT(other.unsent_bytes(), std::size_t{1} << 20);
  EXPECT_LT(tree.routes[static_cast<std::size_t>(relay)]->unsent_bytes(), std::size_t{8} << 20);
}

TEST(Route, ACollectorThatDoesNotRunForAWhileLosesOnlyTheRelayThatEnds) {
  for (const double before_s : {0.0, 0.1}) {  // the loss is seen after the block, or before
    Tree tree(3);
    ASSERT_TRUE(tree.start());
    const int first = tree.relay(1);
    tree.routes[static_cast<std::size_t>(first)].reset();
    tree.send_up(1, 1);
    tree.serve(before_s);
    tree.block_collector(12);
    tree.send_down(1);
    tree.serve(4);
    EXPECT_THAT(tree.gone, ElementsAre(first));
    EXPECT_EQ(tree.joined(), 3 * per_node - 2);
    tree.expect_all(1, {1}, first);
  }
}

/// In real time: the kernel's limits count.
TEST(Route, AClosedWindowIsNotACutCable) {
  Tree tree(2);
  ASSERT_TRUE(tree.start());
  constexpr int records = 8000;
  auto reception = std::move(tree.reception);  // the collector does not run
  for (int i = 0; i < records; ++i) tree.send_up(1, i);
  tree.serve(2);
  for (int i = 0; i < 20; ++i) {
    usleep(500'000);
    tree.serve(0.02);
  }
  tree.reception = std::move(reception);
  tree.serve(10,
             [&] { return tree.up[per_node + 1].size() == records && tree.up[per_node].size() == records; });
  EXPECT_THAT(tree.gone, IsEmpty());
  EXPECT_EQ(tree.joined(), 2 * per_node - 1);
}

TEST(OpenFiles, OneForEachNodeIsRequired) {
  LaunchEnvironment launch;
  launch.size = 2147483646;
  launch.local_size = 2;
  if (most_open_files() >= 1073741888) GTEST_SKIP() << "this machine allows any number";
  try {
    require_open_files(launch);
    ADD_FAILURE() << "begins";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                ::testing::HasSubstr("needs 1073741888 open files for 2147483646 ranks on 1073741823 nodes"));
  }
  launch.size = 8192;
  launch.local_size = 8;
  EXPECT_NO_THROW(require_open_files(launch)) << "1095 are needed";
}

/// Rank 0's node may have more ranks than the others, or fewer.
TEST(OpenFiles, AStepOfSlurmHasTheNodesThatItTells) {
  LaunchEnvironment launch;
  launch.size = 1000;
  setenv("SLURM_STEP_NUM_TASKS", "1000", 1);
  setenv("SLURM_STEP_NUM_NODES", "500", 1);
  for (const int local : {1, 8}) {
    launch.local_size = local;
    EXPECT_EQ(connections_of(launch), local - 1 + 499);
  }
  setenv("SLURM_STEP_NUM_TASKS", "500", 1);  // of the step with the daemons of mpirun
  EXPECT_EQ(connections_of(launch), 7 + 124);
  unsetenv("SLURM_STEP_NUM_TASKS");
  unsetenv("SLURM_STEP_NUM_NODES");
  EXPECT_EQ(connections_of(launch), 7 + 124);
}

}  // namespace
}  // namespace assay::supervisor
