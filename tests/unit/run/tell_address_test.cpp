// SPDX-License-Identifier: Apache-2.0
// The key of a run goes over MPI only where some rank cannot read it from the file beside the output.
#include "run/tell_address.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "supervisor/handshake.hpp"
#include "supervisor/rendezvous.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

using supervisor::MessageType;

/// One of two ranks: the other one says whether it finds the collector.
class OneOfTwo final : public fakes::SelfCommunicator {
 public:
  OneOfTwo(int rank, bool other_finds) : rank_(rank), other_finds_(other_finds) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  void all_reduce(const void* in, void* out, std::size_t, DataType, ReduceOp) override {
    *static_cast<double*>(out) = std::min(*static_cast<const double*>(in), other_finds_ ? 1.0 : 0.0);
  }
  std::string broadcast_text(const std::string& mine, int) override {
    sent = rank_ == 0 ? mine : "from rank 0";
    return *sent;
  }
  std::optional<std::string> sent;

 private:
  int rank_;
  bool other_finds_;
};

class TellAddressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("PMIX_NAMESPACE", "tell-address-test", 1);
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    link.emplace(ends[0], heartbeat);
    end.emplace(ends[1]);
  }
  void TearDown() override { unsetenv("PMIX_NAMESPACE"); }
  void write_file() { file.emplace(folder, supervisor::job_name(), address); }

  /// What went over MPI on this rank; nothing if nothing did.
  std::optional<std::string> told(int rank, bool other_finds) {
    OneOfTwo launch(rank, other_finds);
    if (rank == 0) end->send_all({MessageType::address, 0, 0, to_text(address)});
    tell_address(launch, *link, folder);
    return launch.sent;
  }

  supervisor::Address address{supervisor::random_token(), {"127.0.0.1"}, 4711};
  supervisor::Heartbeat heartbeat;
  TemporaryFolder temporary;
  std::string folder = temporary.path();
  int ends[2];
  std::optional<supervisor::WorkerLink> link;
  std::optional<supervisor::Stream> end;
  std::optional<supervisor::RendezvousFile> file;
};

TEST_F(TellAddressTest, NothingIsSentWhereAllReadTheFile) {
  write_file();
  EXPECT_EQ(told(1, true), std::nullopt);
  EXPECT_EQ(told(0, true), std::nullopt);
}

TEST_F(TellAddressTest, AFileThatIsRemovedHasBeenRead) {
  heartbeat.address_known = true;
  EXPECT_EQ(told(1, true), std::nullopt);
}

TEST_F(TellAddressTest, ARankWithoutTheFileGetsItOverMpi) {
  EXPECT_EQ(told(1, true), "from rank 0");
  const auto message = end->wait();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->type, MessageType::connect);
  EXPECT_EQ(message->text, "from rank 0");
}

TEST_F(TellAddressTest, AllAreSentWhatOneLacks) {
  write_file();
  const auto sent = told(0, false);
  ASSERT_TRUE(sent);
  EXPECT_NE(sent->find(address.key), std::string::npos);
}

}  // namespace
}  // namespace assay
