// SPDX-License-Identifier: Apache-2.0
#include "run/selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/hostlist.hpp"
#include "tests/unit/expect_error.hpp"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Hostlist, AsSlurmWritesIt) {
  EXPECT_THAT(expand_hostlist("node[01-03,7],gpu5"),
              ElementsAre("node01", "node02", "node03", "node7", "gpu5"));
  EXPECT_THAT(expand_hostlist("r[1-2]n[8-9]x"), ElementsAre("r1n8x", "r1n9x", "r2n8x", "r2n9x"));
  EXPECT_THAT(expand_hostlist("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expand_hostlist("a b\n# c\nd#e\n,,f"), ElementsAre("a", "b", "d", "f"));
  EXPECT_THAT(expand_hostlist("node*"), ElementsAre("node*"));
  EXPECT_THAT(expand_hostlist(" \n"), IsEmpty());
  EXPECT_THAT(expand_hostlist("n[1-1000000]"), SizeIs(1000000));
}

TEST(Hostlist, IsCompressedToTheSameNames) {
  EXPECT_EQ(compress_hostlist({"n1", "n2", "n10", "n3", "n11"}), "n[1-3,10-11]");
  EXPECT_EQ(compress_hostlist({"n09", "n10", "n08.a", "login", "r1n2x", "r1n3x", "n1"}),
            "login,n[1,10],n09,n08.a,r1n[2-3]x");
  EXPECT_EQ(compress_hostlist({"n123456789012345678901"}), "n123456789012345678901");
  EXPECT_EQ(compress_hostlist({"x1c0s0b0", "x1c0s1b0", "x1c0s2b0", "x1c0s2b1"}), "x1c0s[0-2]b0,x1c0s2b1");
  EXPECT_EQ(compress_hostlist({}), "");
  std::vector<std::string> names;
  for (int rack = 0; rack < 40; ++rack)
    for (int node = 0; node < 312; node += 1 + node % 3)
      names.push_back("rack" + std::to_string(rack) + "-" + std::string(node % 2, '0') +
                      std::to_string(node));
  auto again = expand_hostlist(compress_hostlist(names));
  std::ranges::sort(again);
  std::ranges::sort(names);
  EXPECT_EQ(again, names);
}

TEST(Hostlist, SaysWhatIsWrong) {
  for (const auto& [text, what] : {std::pair{"n[1-", "not closed"},
                                   {"n[3-1]", "backwards"},
                                   {"n[a]", "numbers and ranges"},
                                   {"n[]", "numbers and ranges"},
                                   {"n[1-2000000]", "more than a million"},
                                   {"n[1-9999]m[1-9999]", "more than a million"},
                                   {"n[-1]", "numbers and ranges"}})
    EXPECT_THAT(usage_message([text = text] { expand_hostlist(text); }), HasSubstr(what));
}

const std::vector<std::string> hosts = {"n1", "n1", "n2", "n3", "n3"};

TEST(Selection, OfNodes) {
  EXPECT_THAT(choose_ranks(hosts, "", ""), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "n[2-3]", ""), ElementsAre(2, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "", "n1,n99"), ElementsAre(2, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "n*", "n2"), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "n[2-4]", "n4"), ElementsAre(2, 3, 4)) << "not launched on any more";
  EXPECT_THAT(usage_message([] { choose_ranks(hosts, "n4", "n4"); }),
              HasSubstr("--exclude: no node is left"));
  EXPECT_THAT(usage_message([] { choose_ranks(hosts, "n1,n4", ""); }),
              HasSubstr("--only: no rank runs on 'n4'"));
  EXPECT_THAT(usage_message([] { choose_ranks(hosts, "n1", "n1"); }),
              HasSubstr("--exclude: no node is left"));
}

TEST(Selection, OfNamesAndPatternsTogether) {
  EXPECT_THAT(choose_ranks(hosts, "n[2],n?", "n1*"), ElementsAre(2, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "n1,*3", ""), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(choose_ranks(hosts, "\\n1,n2", ""), ElementsAre(0, 1, 2)) << "an escape is a pattern";
  EXPECT_THAT(choose_ranks(hosts, "n4,n2", "n?4,n[4]"), ElementsAre(2));
  EXPECT_THAT(usage_message([] { choose_ranks(hosts, "n1,m*", ""); }), HasSubstr("no rank runs on 'm*'"));
}

/// Each name is not compared with each rank: that took every rank 16 s.
TEST(Selection, OfANodeListOfALargeCluster) {
  std::vector<std::string> ranks;
  for (int node = 0; node < 12'500; ++node) ranks.insert(ranks.end(), 8, "node" + std::to_string(node));
  const std::string all = "node[0-12499]";
  EXPECT_THAT(choose_ranks(ranks, all, "node[0-12498],gone*"),
              ElementsAre(99'992, 99'993, 99'994, 99'995, 99'996, 99'997, 99'998, 99'999));
  EXPECT_THAT(choose_ranks(ranks, all + ",node12500", "node12500"), SizeIs(100'000));
}

TEST(Selection, OfOneNodeByName) {
  EXPECT_TRUE(is_asked_for("n4", "", ""));
  EXPECT_TRUE(is_asked_for("n4", "n[1-4]", "n1"));
  EXPECT_FALSE(is_asked_for("n4", "n[1-3]", ""));
  EXPECT_FALSE(is_asked_for("n4", "", "n[4-5]"));
}

}  // namespace
}  // namespace assay
