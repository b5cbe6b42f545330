// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "supervisor/connections.hpp"

namespace assay::supervisor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Connections to `ranks` supervisors, whose ends the test holds.
struct Bundle {
  Connections lines;
  std::vector<Stream> others;
  std::vector<std::string> taken;
  std::vector<int> gone;

  explicit Bundle(int ranks) : lines(ranks), others(static_cast<std::size_t>(ranks)) {
    for (int rank = 1; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      lines.add(rank, "host", Stream(ends[0]));
      other(rank) = Stream(ends[1]);
      EXPECT_TRUE(other(rank).send_all({MessageType::join, rank, 1, "host"}));
      step();
      EXPECT_EQ(other(rank).wait().value().type, MessageType::joined);
    }
  }
  Stream& other(int rank) { return others[static_cast<std::size_t>(rank)]; }

  /// What the collector does: sleeps until a line is ready, then serves. False when nothing became ready.
  bool step(double now = 1) {
    pollfd p{lines.fd(), POLLIN, 0};
    const bool ready = poll(&p, 1, 0) == 1;
    lines.serve(now, {[](int, const std::string&) {},
                      [this](const Message& m) { taken.push_back(std::to_string(m.rank) + ":" + m.text); },
                      [this](int rank) { gone.push_back(rank); }});
    return ready;
  }
};

TEST(Connections, NobodySpeaksForARankOfAnotherConnection) {
  Bundle bundle(4);
  EXPECT_FALSE(bundle.step());
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::left, 3, 1, ""}));
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::status, 3, 0, "says it is 3"}));
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::join, 3, 2, "another host"}));
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::join, 3, 1, "host"})) << "an attempt of before";
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::status, 3, 0, "says so again"}));
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::status, 0, 0, "says it is 0"}));
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::status, 2, 0, "is 2"}));
  ASSERT_TRUE(bundle.step());
  EXPECT_THAT(bundle.taken, ElementsAre("2:is 2"));
  EXPECT_FALSE(bundle.step());
  EXPECT_THAT(bundle.gone, IsEmpty());
}

TEST(Connections, MessagesBeforeTheEndAreDeliveredAndTheEndOnce) {
  Bundle bundle(3);
  EXPECT_TRUE(bundle.other(1).send_all({MessageType::died, 1, 9, "last words"}));
  bundle.other(1).close();
  while (bundle.step()) {
  }
  EXPECT_THAT(bundle.taken, ElementsAre("1:last words"));
  EXPECT_THAT(bundle.gone, ElementsAre(1));
  EXPECT_EQ(bundle.lines.open_count(), 1);
  bundle.lines.send(1, {MessageType::kill, 1, 0, ""});
  EXPECT_FALSE(bundle.step());
}

TEST(Connections, InvalidMessageClosesOneConnection) {
  Bundle bundle(3);
  ASSERT_EQ(::send(bundle.other(1).fd(), std::string(100, 'x').data(), 100, 0), 100);
  EXPECT_TRUE(bundle.other(2).send_all({MessageType::status, 2, 0, "well"}));
  while (bundle.step()) {
  }
  EXPECT_THAT(bundle.taken, ElementsAre("2:well"));
  EXPECT_THAT(bundle.gone, ElementsAre(1));
}

TEST(Delivery, KeepsWhatTheOtherEndDoesNotHaveAndTakesEachOnce) {
  Delivery one, other;
  std::vector<int> taken;
  const auto take = [&](const Message& m) {
    if (other.take(m)) taken.push_back(m.number);
  };
  take(one.number({MessageType::record, 1, 1, ""}));
  one.number({MessageType::record, 1, 2, ""});  // lost on the way
  one.send_again(0, take);                      // the other end's count was lost, too
  EXPECT_THAT(taken, ElementsAre(1, 2));
  EXPECT_EQ(one.kept(), 2u);
  EXPECT_TRUE(one.take(other.number({MessageType::status, 1, 0, ""})));
  EXPECT_EQ(one.kept(), 0u) << "each message says what its sender has";
}

TEST(Connections, ALongMessageIsSentInParts) {
  Bundle bundle(2);
  const std::string large(8 << 20, 'x');
  bundle.lines.send(1, {MessageType::step, -1, 7, large});
  Stream& other = bundle.other(1);
  std::optional<Message> message;
  for (int i = 0; i < 10000 && !message; ++i) {
    ASSERT_TRUE(other.pump_in());
    message = other.take();
    bundle.step();
  }
  ASSERT_TRUE(message) << "the rest was never sent";
  EXPECT_EQ(message->text, large);
  EXPECT_FALSE(bundle.step()) << "nobody asks to be woken for what is sent";
}

/// Else the collector counts as silence what it has not read.
TEST(Connections, OneLookReadsAllThatIsReady) {
  Bundle bundle(600);
  for (int rank = 1; rank < 600; ++rank)
    EXPECT_TRUE(bundle.other(rank).send_all({MessageType::status, rank, 0, "here"}));
  EXPECT_TRUE(bundle.step());
  EXPECT_EQ(bundle.taken.size(), 599u);
}

}  // namespace
}  // namespace assay::supervisor
