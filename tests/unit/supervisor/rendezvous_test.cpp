// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "supervisor/handshake.hpp"
#include "supervisor/rendezvous.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::supervisor {
namespace {

namespace fs = std::filesystem;

class RendezvousTest : public ::testing::Test {
 protected:
  void SetUp() override { address = {random_token(), {"127.0.0.1"}, 4711}; }
  fs::path only_file() const { return fs::directory_iterator(folder)->path(); }
  TemporaryFolder temporary;
  std::string folder = temporary.path();
  Address address;
};

TEST_F(RendezvousTest, IsReadBackAndForItsOwnerOnly) {
  const RendezvousFile file(folder, "job1", address);
  const auto found = RendezvousFile::read(folder, "job1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key, address.key);
  EXPECT_EQ(found->port, 4711);
  struct stat info {};
  ASSERT_EQ(stat(only_file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(RendezvousFile::read(folder, "job2"));
}

TEST_F(RendezvousTest, GoesWithItsRunAndReplacesAStaleOne) {
  {
    const RendezvousFile stale(folder, "job1", address);
    Address fresh = address;
    fresh.port = 4712;
    const RendezvousFile file(folder, "job1", fresh);
    EXPECT_EQ(RendezvousFile::read(folder, "job1")->port, 4712);
  }
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(RendezvousTest, WhatOthersCanReadIsNotTrusted) {
  const RendezvousFile file(folder, "job1", address);
  ASSERT_EQ(chmod(only_file().c_str(), 0644), 0);
  EXPECT_FALSE(RendezvousFile::read(folder, "job1"));
}

TEST_F(RendezvousTest, NonsenseIsNoAddress) {
  const RendezvousFile file(folder, "job1", address);
  for (const char* text : {"", "{", "[]", "{\"key\":1}", "{\"key\":\"x\",\"hosts\":[],\"port\":1}"}) {
    std::ofstream(only_file()) << text;
    EXPECT_FALSE(RendezvousFile::read(folder, "job1")) << text;
  }
}

TEST_F(RendezvousTest, NoFolderIsNoError) {
  const RendezvousFile file(folder + "/nowhere", "job1", address);
  EXPECT_FALSE(RendezvousFile::read(folder + "/nowhere", "job1"));
}

TEST(Rendezvous, TokensDiffer) {
  EXPECT_EQ(random_token().size(), 64u);
  EXPECT_NE(random_token(), random_token());
}

TEST(Rendezvous, ListensWhereItSays) {
  Address address;
  const int listening = listen_on(true, address).at(0);
  const int fd = start_connect(address.hosts.at(0), address.port);
  ASSERT_GE(fd, 0);
  pollfd p{listening, POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 5000), 1);
  close(fd);
  close(listening);
}

TEST(Rendezvous, ListensOnlyWhereTheLauncherTellsOthers) {
  for (const char* name : {"OMPI_MCA_orte_hnp_uri", "SLURM_LAUNCH_NODE_IPADDR"}) unsetenv(name);
  const auto hosts_with = [](const std::string& told) {
    setenv("MPIR_CVAR_CH3_INTERFACE_HOSTNAME", told.c_str(), 1);  // as Hydra does
    Address address;
    for (const int fd : listen_on(false, address)) close(fd);
    unsetenv("MPIR_CVAR_CH3_INTERFACE_HOSTNAME");
    return address.hosts;
  };
  const auto all = hosts_with("");
  EXPECT_EQ(hosts_with("localhost"), all) << "leads nobody here";
  EXPECT_EQ(hosts_with("no.such.host.invalid"), all);
  for (const std::string& own : all) {
    if (own.starts_with("127.")) continue;
    EXPECT_EQ(hosts_with(own), std::vector<std::string>{own});
  }
  EXPECT_FALSE(all.empty());
}

}  // namespace
}  // namespace assay::supervisor
