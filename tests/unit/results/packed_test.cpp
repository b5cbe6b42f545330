// SPDX-License-Identifier: Apache-2.0
// Tables of thousands of parts.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "results/reader.hpp"
#include "results/save.hpp"
#include "tests/results/example_results.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::results {
namespace {

namespace fs = std::filesystem;

class PackedTables : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "run.h5";
};

TEST_F(PackedTables, TelemetryOfManyPartsIsOneTable) {
  example::write(file_, 1);
  Results r = load(file_);
  const auto node = static_cast<std::int32_t>(r.entities.size());
  r.telemetry = {};
  for (std::int32_t row = node; row < node + 3000; ++row) {
    r.entities.push_back({"node", "n" + std::to_string(row), "hostname", "n" + std::to_string(row), 0, -1});
    r.telemetry.append({{row, row}, {0, 1}, {{"power", {row * 1.0, 1}}}, {{"power", "W"}}});
  }
  save(r, file_, true);
  EXPECT_EQ(example::difference(load(file_), r), "");
  EXPECT_LT(fs::file_size(file_), 400'000U);
  const hid_t file = H5Fopen(file_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  H5G_info_t group{};
  ASSERT_GE(H5Gget_info_by_name(file, "/telemetry", &group, H5P_DEFAULT), 0);
  EXPECT_EQ(group.nlinks, 2U) << "samples and flags";
  H5Fclose(file);
}

TEST_F(PackedTables, ManyTextsOfATableArePacked) {
  example::write(file_, 1);
  Results r = load(file_);
  r.counters.clear();
  std::string longest(239, 'n');
  longest += "\u00e4";
  for (int i = 0; i < 20000; ++i)
    r.counters.push_back(
        {"gemm/bf16-8192-together-of-all", 1, "counter_" + std::to_string(i % 7), i * 1.0, i + 1.0});
  r.counters[4711].counter = longest;
  save(r, file_, true);
  EXPECT_LT(fs::file_size(file_), 400'000U);
  EXPECT_EQ(example::difference(load(file_), r), "");
  r.counters[4711].counter = longest.substr(0, 100) + "\xff";  // longer when it is clean
  r.counters[4712].counter = std::string("a\0b", 3);
  save(r, file_, true);
  const Results cleaned = load(file_);
  EXPECT_EQ(cleaned.counters[4711].counter, longest.substr(0, 100) + "\xef\xbf\xbd");
  EXPECT_EQ(cleaned.counters[4712].counter, "ab");
  EXPECT_EQ(cleaned.counters[4713].counter, r.counters[4713].counter);
  r.counters[4712].counter = "ab";
  r.counters[4711].counter = longest + std::string(100, 'x');  // each keeps its own length
  save(r, file_, true);
  EXPECT_EQ(example::difference(load(file_), r), "");
}

}  // namespace
}  // namespace assay::results
