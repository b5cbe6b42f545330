// SPDX-License-Identifier: Apache-2.0
// Files that several ranks have open: what is true for some of them only.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>

#include "base/error.hpp"
#include "suite_rig.hpp"
#include "suites/storage/refused.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/storage_suite.hpp"
#include "suites/storage/transfer.hpp"

namespace {

bool opening_fails = false;  ///< on this rank

}  // namespace

/// In place of the library's own: a rank that fails leaves the others with an open file.
extern "C" int MPI_File_open(MPI_Comm comm, const char* name, int mode, MPI_Info info, MPI_File* file) {
  const int code = PMPI_File_open(comm, name, mode, info, file);
  if (!opening_fails) return code;
  *file = MPI_FILE_NULL;
  return MPI_ERR_OTHER;
}

namespace assay::storage {
namespace {

namespace fs = std::filesystem;

/// Ranks on nodes of one each, with a directory that they share.
class StorageOfSeveral : public testing::Test {
 protected:
  void SetUp() override {
    world_size_ = rig_.size();
    std::string name = (fs::temp_directory_path() / "assay-storage-XXXXXX").string();
    if (rig_.rank() == 0) name = ::mkdtemp(name.data());
    folder_ = rig_.world().broadcast_text(name, 0);
    rig_.option("storage.paths", "shared:" + folder_.string());
    rig_.option("storage.space", "16MiB");
    rig_.prepare();
  }
  void TearDown() override {
    opening_fails = false;
    rig_.world().barrier();
    std::error_code ignored;
    if (rig_.rank() == 0) fs::remove_all(folder_, ignored);
  }
  /// Of all ranks: the least and the greatest value of a metric in their rows.
  std::pair<double, double> of_all(const CaseRecord& record, const std::string& metric) {
    const double mine = record.rows_.at(0).values.at(metric).at(0);
    return {rig_.world().min(mine), rig_.world().max(mine)};
  }

  StorageSuite suite_;
  SuiteRig rig_{suite_, ranks(), Level::quick};
  int world_size_ = 0;
  fs::path folder_;

 private:
  static int ranks() {
    int all = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    return all;
  }
};

TEST_F(StorageOfSeveral, NodesForWhichOthersMoveDataHaveTheirShare) {
  const CaseRecord record = rig_.run("mpiio-collective-0");
  EXPECT_EQ(record.state_, results::CaseState::pass) << record.reason_;
  const auto [least, greatest] = of_all(record, "moved_share");
  if (!std::isnan(least)) {
    EXPECT_DOUBLE_EQ(least, greatest);
  }
}

TEST_F(StorageOfSeveral, OneThatCannotOpenTheFileHoldsUpNobody) {
  if (world_size_ < 2) GTEST_SKIP() << "one rank";
  opening_fails = rig_.rank() == 1;
  for (const char* name : {"mpiio-collective-0", "mpiio-independent-0"}) {
    if (opening_fails)
      EXPECT_THROW(rig_.run(name), Refused) << name;
    else
      EXPECT_TRUE(rig_.run(name).rows_.empty()) << name;
  }
}

/// What runs within a case.
class Within final : public Suite {
 public:
  explicit Within(std::function<void(Context&)> work) : work_(std::move(work)) {}
  std::string_view name() const noexcept override { return "within"; }
  std::string_view summary() const noexcept override { return ""; }
  std::vector<OptionSpec> options() const override { return {}; }
  std::vector<results::MetricSpec> metrics() const override { return {}; }
  std::vector<Case> plan(const PlanInput&) const override { return {}; }
  void run(const Case&, Context& context) override { work_(context); }

 private:
  std::function<void(Context&)> work_;
};

CaseRecord run_within(std::function<void(Context&)> work) {
  Within suite(std::move(work));
  Case c;
  c.suite = c.name = "within";
  return SuiteRig(suite).run(c);
}

TEST(StorageFiles, AnErrorOfTheirEndIsTold) {
  run_within([](Context& context) {
    std::string why;
    const auto engine = make_engine("threads", 1, why);
    DamageLog log({1, 1, 2, 0}, 0, context);
    const auto open = [] { return Descriptor(::open("/dev/null", O_WRONLY | O_CLOEXEC)); };
    Transfer transfer(open(), "a file", 0, {4096, 1, 1}, *engine, log, context);
    EXPECT_NO_THROW(transfer.close());
    transfer.use_file(open());
    ::close(transfer.descriptor());
    try {
      transfer.close();
      FAIL() << "no error";
    } catch (const Refused& e) {
      EXPECT_EQ(e.reason(), EBADF);
      EXPECT_NE(std::string(e.what()).find("a file: close"), std::string::npos) << e.what();
    }
  });
}

TEST(StorageFiles, ACacheIsTheOneOfAnyDirection) {
  NodeSeries met;
  met.t = {0};
  met.rates = {1e9};
  met.evidence.asked = met.evidence.moved = 100;
  NodeSeries cached = met;
  cached.evidence.moved = 92;  // of both 96 %
  for (const auto& [written, read] : {std::pair{met, cached}, std::pair{cached, met}, std::pair{met, met}}) {
    const bool cold = written.evidence.cold() && read.evidence.cold();
    const CaseRecord record = run_within([&](Context& context) {
      auto* row = report_both(written, "write", read, "read", "/data", Case{}, context);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(row->values.contains("write_cached") || row->values.contains("read_cached"), !cold);
    });
    ASSERT_EQ(record.events_.size(), cold ? 0u : 1u);
    if (!cold) {
      EXPECT_NE(record.events_[0].text.find("92.0 %"), std::string::npos) << record.events_[0].text;
    }
  }
}

}  // namespace
}  // namespace assay::storage
