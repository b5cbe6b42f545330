// SPDX-License-Identifier: Apache-2.0
// What a run needs on disk, and what is said where there is too little.
#include "run/disk_space.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/units.hpp"

namespace assay {
namespace {

constexpr std::uint64_t disk_gib = 1ULL << 30;

/// Unpacked 1.6 GB, packed 0.9 GB.
Plan plan_of_links() {
  Plan plan;
  plan.budget_s = 100;
  Case c;
  c.suite = "fixed";
  c.name = "a";
  c.required = true;
  c.seconds = 50;
  c.entities = 1'000'000;
  c.samples = 100;
  plan.cases = {c};
  return plan;
}

TEST(DiskSpace, CountsWhatIsNotPackedAndAsMuchForTheMerge) {
  const Plan plan = plan_of_links();
  const DiskNeed need = disk_need(plan);
  EXPECT_NEAR(static_cast<double>(need.cases), 1.6e9, 0.05e9);
  EXPECT_GE(need.merged, need.cases);
  EXPECT_GT(need.sum(), 3 * plan.file_bytes());
  Topology topology;
  topology.nodes.emplace_back();
  const std::string text = plan_text(plan, Config(), topology);
  EXPECT_NE(text.find("peak disk use (uncompressed cases and the merged file): " + format_bytes(need.sum())),
            std::string::npos)
      << text;
}

TEST(DiskSpace, WhereThereIsTooLittleItIsTold) {
  const DiskNeed need{2 * disk_gib, 3 * disk_gib};
  const auto space = [](std::uint64_t free, std::uint64_t device) {
    return DiskSpace{device == 1 ? "/shared" : "/local", free, device};
  };
  EXPECT_EQ(lack_of_space(need, space(5 * disk_gib, 1), std::nullopt), "");
  EXPECT_EQ(lack_of_space(need, space(5 * disk_gib - 1, 1), std::nullopt).substr(0, 88),
            "completed cases (uncompressed) and the merged results file need about 5 GiB in "
            "/shared, ");
  EXPECT_EQ(lack_of_space(need, space(4 * disk_gib, 1), space(2 * disk_gib, 2)), "");
  EXPECT_EQ(lack_of_space(need, space(4 * disk_gib, 1), space(1 * disk_gib, 2)),
            "--spool: completed cases need about 2 GiB in /local, 1 GiB are free");
  EXPECT_EQ(lack_of_space(need, space(2 * disk_gib, 1), space(2 * disk_gib, 2)),
            "the results file before compression needs about 3 GiB in /shared, 2 GiB are free");
  EXPECT_NE(lack_of_space(need, space(4 * disk_gib, 1), space(4 * disk_gib, 1)), "") << "one disk for both";
  EXPECT_EQ(lack_of_space(need, std::nullopt, std::nullopt), "") << "nothing is known";
  EXPECT_EQ(lack_of_space({20 << 20, 21 << 20}, space(0, 1), std::nullopt), "")
      << "a full disk ends a short run";
}

TEST(DiskSpace, ARunThatCannotEndIsNotBegun) {
  Plan plan = plan_of_links();
  Config config;
  for (const OptionSpec& option : run_options()) config.options.set(option, {});
  config.out = "/tmp/none.h5";
  EXPECT_NO_THROW(check_disk_space({}, config, config.out));
  plan.cases[0].entities = 1'000'000'000'000;
  EXPECT_THROW(check_disk_space(plan, config, config.out), Error);
}

}  // namespace
}  // namespace assay
