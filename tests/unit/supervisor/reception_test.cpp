// SPDX-License-Identifier: Apache-2.0
// The door of the collector: who has the key comes in at once, whatever others do at it.
#include "supervisor/reception.hpp"
#include "base/child_process.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>

#include "base/clock.hpp"
#include "supervisor/handshake.hpp"
#include "supervisor/search.hpp"
#include "tests/support/connection_flood.hpp"

namespace assay::supervisor {
namespace {

class ReceptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    address.key = random_token();
    reception = std::make_unique<Reception>(true, address, ranks, ranks - 1, "host");
  }

  /// Serves until `done` or for so long. Returns the seconds it took.
  template <class Done>
  double serve(double seconds, const Done& done) {
    const double begin = now_s();
    while (now_s() - begin < seconds && !done()) {
      std::vector<pollfd> fds;
      reception->watch(fds);
      if (search) search->watch(fds);
      poll(fds.data(), fds.size(), 20);
      reception->serve(now_s(), [this](int rank, const std::string&, Stream stream) {
        entered[static_cast<std::size_t>(rank)] = std::move(stream);
      });
      if (search && !found.open()) found = search->round(to_text(address), now_s());
    }
    return now_s() - begin;
  }

  static constexpr int ranks = 3;
  Address address;
  std::unique_ptr<Reception> reception;
  std::unique_ptr<Search> search;
  Stream found;
  std::vector<Stream> entered = std::vector<Stream>(ranks);
};

int connected_to(const Address& address) {
  const int fd = start_connect("127.0.0.1", address.port);
  pollfd p{fd, POLLOUT, 0};
  if (fd >= 0) poll(&p, 1, 2000);
  return fd;
}

TEST_F(ReceptionTest, WhoHasTheKeyComesIn) {
  search = std::make_unique<Search>("", Place{1, ranks, 1, "host"});
  EXPECT_LT(serve(5, [this] { return found.open(); }), 1.0);
  EXPECT_TRUE(entered[1].open());
  // Both ends talk on.
  found.queue({MessageType::ready, 1, 0, std::string(100'000, 'x')});
  found.pump_out();
  serve(0.2, [] { return false; });
  entered[1].pump_in();
}

TEST_F(ReceptionTest, WhoHasAnotherKeyDoesNot) {
  search = std::make_unique<Search>("", Place{1, ranks, 1, "host"});
  const std::string right = address.key;
  address.key = random_token();  // what the supervisor is told
  serve(0.6, [this] { return found.open() || entered[1].open(); });
  EXPECT_FALSE(found.open());
  EXPECT_FALSE(entered[1].open());
}

TEST_F(ReceptionTest, RecordedHandshakeCannotBeReplayed) {
  Stream spy(connected_to(address));
  std::optional<Message> asked;
  serve(2, [&] { return spy.pump_in() && (asked = spy.take()); });
  ASSERT_TRUE(asked);
  ASSERT_EQ(asked->type, MessageType::challenge);
  const Message told = hello(address.key, asked->text, random_token(), 1, ranks, "host");
  EXPECT_EQ(told.text.find(address.key), std::string::npos);
  EXPECT_EQ(welcome(address.key, asked->text, {1, "host", told.text.substr(0, 64)}).text.find(address.key),
            std::string::npos);
  Stream thief(connected_to(address));  // says the same once more, to another challenge
  serve(2, [&] { return thief.pump_in() && thief.take(); });
  thief.queue(told);
  thief.pump_out();
  serve(0.5, [this] { return entered[1].open(); });
  EXPECT_FALSE(entered[1].open());
  // Said to its own challenge it is right; as another rank, or of another host, it is not.
  Message forged = told;
  forged.rank = 2;
  spy.queue(forged);
  spy.pump_out();
  serve(0.5, [this] { return entered[2].open(); });
  EXPECT_FALSE(entered[2].open());
}

TEST_F(ReceptionTest, PendingConnectionsAreFewAndShortLived) {
  std::deque<Stream> silent;
  std::size_t most = 0;
  for (int i = 0; i < 900; ++i) {
    silent.emplace_back(connected_to(address));
    if (i % 50 == 49) serve(0.01, [] { return false; });
    most = std::max(most, reception->pending());
  }
  EXPECT_LE(most, Reception::most_pending + ranks - 1);
  EXPECT_GT(most, 100u);
  serve(Reception::introduce_s + 0.5, [this] { return reception->pending() == 0; });
  EXPECT_EQ(reception->pending(), 0u);
}

/// Else a flood takes the files that rank 0's supervisor may open: each node has one connection, and
/// thousands of nodes have a hundred thousand ranks.
TEST_F(ReceptionTest, RanksThatComeOverARelayTakeNoPlace) {
  constexpr int many_ranks = 100'000, nodes = 4;
  reception = std::make_unique<Reception>(true, address, many_ranks, nodes - 1, "another host");
  std::deque<Stream> silent;
  for (int i = 0; i < 900; ++i) {
    silent.emplace_back(connected_to(address));
    if (i % 50 == 49) serve(0.01, [] { return false; });
    ASSERT_LE(reception->pending(), Reception::most_pending + nodes - 1);
  }
  EXPECT_GT(reception->pending(), 100u);
}

TEST_F(ReceptionTest, AFloodKeepsNobodyOut) {
  ChildProcess flooder("a flooder", [&] {
    testing_support::flood(address.port, 10'000, 6);
    return 0;
  });
  std::size_t most = 0;
  serve(1.0, [&] {
    most = std::max(most, reception->pending());
    return false;
  });
  EXPECT_GT(most, 100u) << "there is no flood";
  search = std::make_unique<Search>("", Place{2, ranks, 1, "host"});
  const double took = serve(4, [&] {
    most = std::max(most, reception->pending());
    return found.open();
  });
  EXPECT_TRUE(found.open());
  EXPECT_LT(took, 2.0);
  EXPECT_LE(most, Reception::most_pending + ranks - 1);
  flooder.wait_or_kill(0);
}

TEST_F(ReceptionTest, NobodyIsLetInAfterTheLast) {
  const Stream before(connected_to(address));
  reception->close();
  const Stream after(start_connect("127.0.0.1", address.port));
  pollfd p{after.fd(), POLLOUT, 0};
  if (after.open()) {
    ASSERT_EQ(poll(&p, 1, 2000), 1);
    EXPECT_TRUE(p.revents & (POLLERR | POLLHUP));
  }
  EXPECT_FALSE(reception->listening());
  // Ranks that lost their relay come in at the same port.
  reception->listen_again();
  search = std::make_unique<Search>("", Place{1, ranks, 1, "host"});
  serve(5, [this] { return found.open(); });
  EXPECT_TRUE(entered[1].open());
}

TEST_F(ReceptionTest, SupervisorsOfTheCollectorsNodeComeByUnixSocket) {
  search = std::make_unique<Search>("", Place{1, ranks, 2, "host"});
  serve(5, [this] { return found.open(); });
  ASSERT_TRUE(found.open());
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  getpeername(found.fd(), reinterpret_cast<sockaddr*>(&peer), &size);
  EXPECT_EQ(peer.ss_family, AF_UNIX);
  EXPECT_FALSE(search->found_relay());
}

/// In a flood the first attempt may be lost, and the kernel repeats it after a second at the earliest.
TEST(Searching, KnocksAgainWhileNobodyAnswers) {
  Address address;
  address.key = random_token();
  const auto sockets = listen_on(true, address);
  Search search("", Place{1, 2, 1, "host"});
  for (const double now : {0.0, 0.1, 0.3}) search.round(to_text(address), now);
  std::size_t came = 0;
  for (const int socket : sockets) {
    pollfd p{socket, POLLIN, 0};
    while (poll(&p, 1, 300) == 1 && (p.fd = accept(socket, nullptr, nullptr)) >= 0) {
      close(std::exchange(p.fd, socket));
      ++came;
    }
    close(socket);
  }
  EXPECT_EQ(came, 2 * address.hosts.size());
}

TEST(Listening, OnTheAddressThatTheLaunchUses) {
  EXPECT_EQ(addresses_in("15.0;tcp://10.0.0.1,10.1.0.1:44451;tcp6://[fd00::2]:42075"),
            (std::vector<std::string>{"10.0.0.1", "10.1.0.1"}));
  EXPECT_TRUE(addresses_in("nothing").empty());
  // A launcher at an address of this machine: the first that is no loopback.
  Address all;
  setenv("OMPI_MCA_orte_hnp_uri", "", 1);
  setenv("SLURM_LAUNCH_NODE_IPADDR", "", 1);
  for (const int fd : listen_on(false, all)) close(fd);
  const auto own = std::find_if(all.hosts.begin(), all.hosts.end(),
                                [](const std::string& h) { return !h.starts_with("127."); });
  if (own == all.hosts.end()) GTEST_SKIP() << "this machine has no address but loopback";
  setenv("OMPI_MCA_orte_hnp_uri", ("1.0;tcp://" + *own + ":4711").c_str(), 1);
  Address address;
  const auto sockets = listen_on(false, address);
  EXPECT_EQ(address.hosts, std::vector<std::string>{*own});
  ASSERT_EQ(sockets.size(), 1u);
  const Stream elsewhere(start_connect("127.0.0.1", address.port));
  pollfd p{elsewhere.fd(), POLLOUT, 0};
  EXPECT_TRUE(!elsewhere.open() || (poll(&p, 1, 2000) == 1 && (p.revents & (POLLERR | POLLHUP)) != 0));
  const Stream there(start_connect(*own, address.port));
  p = {there.fd(), POLLOUT, 0};
  EXPECT_EQ(poll(&p, 1, 2000), 1);
  EXPECT_FALSE(p.revents & POLLERR);
  for (const int fd : sockets) close(fd);
  unsetenv("OMPI_MCA_orte_hnp_uri");
}

}  // namespace
}  // namespace assay::supervisor
