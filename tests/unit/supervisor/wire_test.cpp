// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/error.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {
namespace {

struct Line {
  int ends[2] = {-1, -1};
  Line() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
};

TEST(Wire, MessagesArriveWholeAndInOrder) {
  const Line line;
  Stream a(line.ends[0]), b(line.ends[1]);
  const std::string large(3 << 20, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(a.send_all({MessageType::record, 3, 7, large}));
    EXPECT_TRUE(a.send_all({MessageType::bye, 3, 2, ""}));
  });
  const auto first = b.wait();
  const auto second = b.wait();
  sender.join();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->type, MessageType::record);
  EXPECT_EQ(first->rank, 3);
  EXPECT_EQ(first->number, 7);
  EXPECT_EQ(first->text, large);
  EXPECT_EQ(second->type, MessageType::bye);
  EXPECT_EQ(second->text, "");
}

TEST(Wire, BytesBeforeTheEndAreDelivered) {
  const Line line;
  Stream b(line.ends[1]);
  {
    Stream a(line.ends[0]);
    ASSERT_TRUE(a.send_all({MessageType::trace, 0, 0, "last words"}));
  }
  const auto message = b.wait();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, "last words");
  EXPECT_FALSE(b.wait());
}

TEST(Wire, PendingConnectionsMayNotSendMuch) {
  const Line line;
  Stream a(line.ends[0]), b(line.ends[1], 512);
  a.queue({MessageType::hello, 1, 2, std::string(513, 'x')});
  a.pump_out();
  b.pump_in();
  EXPECT_THROW(b.take(), Error);
}

TEST(Wire, RubbishIsNoMessage) {
  const Line line;
  Stream b(line.ends[1]);
  const std::string rubbish = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
  ASSERT_EQ(write(line.ends[0], rubbish.data(), rubbish.size()), static_cast<ssize_t>(rubbish.size()));
  b.pump_in();
  EXPECT_THROW(b.take(), Error);
  close(line.ends[0]);
}

TEST(Wire, APromisedLengthAllocatesNothing) {
  const Line line;
  Stream b(line.ends[1]);
  const std::uint32_t head[] = {0x61737379, 10, 0, 0, 0, 0, 0xffffffff, 0x7fffffff};
  ASSERT_EQ(write(line.ends[0], head, sizeof head), static_cast<ssize_t>(sizeof head));
  b.pump_in();
  EXPECT_THROW(b.take(), Error);
  close(line.ends[0]);
}

}  // namespace
}  // namespace assay::supervisor
