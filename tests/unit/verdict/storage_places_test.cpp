// SPDX-License-Identifier: Apache-2.0
// A slow disk is told with its directory and what it is.
#include <gmock/gmock.h>

#include "tests/unit/fabricate.hpp"

namespace assay {
namespace {

using namespace fabricate;
using ::testing::HasSubstr;
using ::testing::Not;

/// Eight nodes with a disk each in /a and in /b, of which that of node 5 in `slow` has half of its rate.
results::VerdictData with_a_slow_disk(const std::string& slow) {
  auto r = cluster(8);
  const auto nodes = rows_of_kind(r, "node");
  for (const std::string path : {"/a", "/b"}) {
    std::vector<double> rates;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      rates.push_back(2e9 * wobble(i, 0.004) * (i == 5 && path == slow ? 0.5 : 1));
    auto& c = add_case(r, "storage", "local-read-" + std::to_string(path == "/b"), "bandwidth", "B/s",
                       results::Better::higher, "node", nodes, rates);
    c.parameters = {{"path", path}};
    c.metrics.front().judging = results::Judging{results::MetricClass::storage, 0.1, 1};
    for (std::size_t i = 0; i < nodes.size(); ++i)
      r.events.push_back({0, nodes[i], "storage-place",
                          path + ": /dev/x on " + path + " (xfs, rw,noquota); disk nvme" +
                              std::to_string(2 * i) + "n1 M1, firmware 7; disk nvme" +
                              std::to_string(2 * i + 1) + "n1 M2; engine io_uring"});
  }
  const std::string faster = " took 9 ms for a request, 3 times the 3 ms of nvme10n1 in local-read";
  r.events.push_back({0, nodes[5], "storage-slow-disk", "/a: nvme11n1" + faster});
  r.events.push_back({0, nodes[4], "storage-slow-disk", "/b: nvme9n1" + faster});
  add_selftest(r, "storage");
  return judge(r);
}

TEST(VerdictStoragePlaces, ASlowDiskIsToldWithItsDirectoryAndWhatItIs) {
  for (const std::string slow : {"/a", "/b"}) {
    const auto v = with_a_slow_disk(slow);
    ASSERT_FALSE(v.findings.empty());
    const auto& f = v.findings.front();
    EXPECT_EQ(f.name, "node5");
    EXPECT_THAT(f.text, HasSubstr("; in " + slow + " (disk nvme10n1 M1, firmware 7; disk nvme11n1 M2)"));
    EXPECT_THAT(f.text, Not(HasSubstr("engine")));
    const std::string member =
        "); nvme11n1 took 9 ms for a request, 3 times the 3 ms of nvme10n1 in local-read";
    EXPECT_EQ(f.text.find(member) != std::string::npos, slow == "/a") << f.text;
    EXPECT_THAT(f.text, Not(HasSubstr("nvme9n1 took")));
    const std::size_t next = f.text.find("; next:");
    EXPECT_TRUE(next == std::string::npos || next > f.text.find("; in /")) << f.text;
  }
}

}  // namespace
}  // namespace assay
