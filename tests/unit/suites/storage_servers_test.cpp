// SPDX-License-Identifier: Apache-2.0
// On which servers files lie, of the text of tools; and who is measured with whom.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "suites/storage/server_case.hpp"
#include "suites/storage/servers.hpp"

namespace assay::storage {
namespace {

std::vector<std::string> names(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& t : parse_lfs_osts(text)) out.push_back(std::to_string(t.index) + " " + t.name);
  return out;
}
using Texts = std::vector<std::string>;

TEST(StorageServers, ActiveTargetsOfLustreEachOnce) {
  EXPECT_EQ(names("OBDS:\n0: scratch-OST0000_UUID ACTIVE\n1: scratch-OST0001_UUID INACTIVE\n"
                  "10: scratch-OST000a_UUID ACTIVE\n10: scratch-OST000b_UUID ACTIVE\n"),
            (Texts{"0 scratch-OST0000", "10 scratch-OST000a"}));
  EXPECT_EQ(names("OBDS::\n\n0: lustre-OST0000_UUID\n"), (Texts{"0 lustre-OST0000"}));
  EXPECT_EQ(names("lfs osts: cannot access\n-1: a ACTIVE\n65536: b ACTIVE\n1x: c ACTIVE\n2: d;rm ACTIVE\n"
                  "3: _UUID ACTIVE\n4:\n99999999999999: e ACTIVE\n5: \x1b[31m ACTIVE\n"),
            Texts{});
}

TEST(StorageServers, TargetsOfAFileInLustre) {
  const std::string one =
      "/mnt/f-7\nlmm_stripe_count:  1\nlmm_stripe_size:   1048576\nlmm_pattern:       raid0\n"
      "lmm_stripe_offset: 3\n\tobdidx\t\t objid\t\t objid\t\t group\n"
      "\t     3\t      40962002\t    0x27106d2\t             0\n\n";
  EXPECT_EQ(parse_lfs_getstripe(one), std::vector{3});
  EXPECT_EQ(parse_lfs_getstripe(one + "7 8 9\n"), std::vector{3});
  EXPECT_EQ(parse_lfs_getstripe("\tobdidx objid\n\t3 1 1 0\n\t5 1 1 0\n\t3 1 1 0\n"), (std::vector{3, 5}));
  EXPECT_EQ(parse_lfs_getstripe("  lcm_entry_count:   1\n      lmm_objects:\n"
                                "      - 0: { l_ost_idx: 4, l_fid: [0x100040000:0x2:0x0] }\n"),
            std::vector{4});
  EXPECT_EQ(parse_lfs_getstripe("\tobdidx\n\t-3\n\t0x3\n\tl_ost_idx:\n"), std::vector<int>{});
}

TEST(StorageServers, TargetsOfAFileInBeeGFS) {
  const std::string head =
      "Entry type: file\nEntryID: 0-5E\nMetadata node: meta01 [ID: 1]\nStripe pattern details:\n+ Type: "
      "RAID0\n"
      "+ Number of storage targets: desired: 1; actual: 1\n+ Storage targets:\n";
  EXPECT_EQ(parse_beegfs_entry(head + "  + 101 @ storage01 [ID: 1]\n"), Texts{"storage01/101"});
  EXPECT_EQ(parse_beegfs_entry(head + "  + 101 @ a [ID: 1]\n  + 102 @ b [ID: 2]\nPath: + 9 @ c [ID: 3]\n"),
            (Texts{"a/101", "b/102"}));
  EXPECT_EQ(
      parse_beegfs_entry("  + 101 @ storage01 [ID: 1]\n" + head + "  + x @ y [ID: 1]\n  + 1 @ $(id) [\n"),
      Texts{});
}

TEST(StorageServers, TheServerOfANetworkMount) {
  const auto of = [](const char* source) { return server_of_mount({"/mnt", "nfs4", source, ""}); };
  EXPECT_EQ(of("filer1:/export/a"), "filer1");
  EXPECT_EQ(of("10.0.0.1@tcp:/scratch"), "10.0.0.1@tcp");
  EXPECT_EQ(of("[fe80::1%eth0]:/x"), "[fe80::1%eth0]");
  EXPECT_EQ(of("//nas/share"), "nas");
  EXPECT_EQ(of("fe80::1:/x"), "fe80::1");
  for (const char* none : {"/dev/sda1", "tmpfs", "", ":/", "//", "[", "a b:/x", "[fe80::1"})
    EXPECT_EQ(of(none), "");
}

TEST(StorageServers, NotEverySourceTellsWhereTheDataAre) {
  EXPECT_TRUE(tells_server({"/mnt", "nfs4", "filer:/export", ""}));
  EXPECT_TRUE(tells_server({"/mnt", "fuse.sshfs", "filer:/export", ""}));
  EXPECT_FALSE(tells_server({"/mnt", "fuse.glusterfs", "brick1:/volume", ""})) << "one of its bricks";
  EXPECT_FALSE(tells_server({"/mnt", "ceph", "10.0.0.1:/", ""})) << "a monitor";
  EXPECT_FALSE(tells_server({"/mnt", "nfs4", "none", ""}));
}

TEST(StorageServers, HostileTextNamesNothingOdd) {
  std::mt19937 random(7);
  const std::string pieces[] = {"obdidx",
                                "\n",
                                " ",
                                "3",
                                "+",
                                "@",
                                ":",
                                "l_ost_idx:",
                                "Storage targets:",
                                "ACTIVE",
                                "\x1b",
                                std::string(300, 'a'),
                                std::string("\0", 1),
                                "_UUID",
                                "9999999999999",
                                "-"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text += pieces[random() % std::size(pieces)];
    for (const auto& t : parse_lfs_osts(text)) {
      EXPECT_LE(t.name.size(), 128U);
      EXPECT_EQ(t.name.find_first_of(std::string("\x1b\n \0", 4)), std::string::npos);
    }
    for (const int index : parse_lfs_getstripe(text)) EXPECT_TRUE(index >= 0 && index <= 65535);
    for (const auto& name : parse_beegfs_entry(text)) EXPECT_LE(name.size(), 140U);
  }
}

/// Each client meets each server once. Unless they share, a server serves one client at a time.
TEST(StorageServers, EachClientMeetsEachServerOnce) {
  for (const auto& [clients, servers, most] : {std::tuple{1, 5, 1},
                                               {4, 5, 1},
                                               {64, 2, 1},
                                               {5, 4, 1},
                                               {64, 64, 1},
                                               {8, 64, 1},
                                               {100, 8, 13},
                                               {200, 3, 67}}) {
    std::map<std::pair<int, int>, int> met;
    for (const auto& round : server_rounds(clients, servers)) {
      std::map<int, int> of_client, of_server;
      for (const auto& [client, server] : round) {
        ++met[{client, server}];
        EXPECT_EQ(++of_client[client], 1);
        EXPECT_LE(++of_server[server], most);
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(clients * servers)) << clients << " " << servers;
    for (const auto& [pair, times] : met) EXPECT_EQ(times, 1);
  }
}

}  // namespace
}  // namespace assay::storage
