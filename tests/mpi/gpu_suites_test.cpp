// SPDX-License-Identifier: Apache-2.0
// Suites that measure links, on GPU memory that the host does not touch.
#include <gtest/gtest.h>

#include <cstdlib>

#include "suite_rig.hpp"
#include "suites/allreduce/allreduce_suite.hpp"
#include "suites/congestion/congestion_suite.hpp"
#include "suites/p2p/p2p_suite.hpp"
#include "test_gpu.hpp"
#include "transport/mpi_detail.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay {
namespace {

using results::CaseState;

/// The environment variable while it lives.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Set() { unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

class GpuSuites : public testing::Test {
 protected:
  void SetUp() override {
    const auto world = mpi::duplicate_world();
    std::string why;
    gpu = test::gpu_of_rank(world->rank(), why);
    if (world->min(gpu == nullptr ? 0 : 1) == 0) GTEST_SKIP() << why;
    if (world->size() < 2) GTEST_SKIP() << "one rank";
  }
  SuiteRig rig(Suite& suite, int nodes = 1, Level level = Level::smoke) {
    return SuiteRig(suite, nodes, level, std::move(gpu));
  }
  std::unique_ptr<test::TestGpu> gpu;
};

class GpuP2p : public GpuSuites, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, GpuP2p,
    testing::Values("selftest-pair", "latency-8-node-nccl", "rate-8-cross-nccl",
                    "bandwidth-uni-65536-node-nccl", "bandwidth-bi-65536-cross-nccl",
                    "bandwidth-bi-13-node-nccl", "latency-8-cross-mpi", "bandwidth-uni-65536-node-mpi",
                    "bandwidth-bi-65536-cross-mpi", "bandwidth-put-65536-node-cuda",
                    "bandwidth-get-65536-node-cuda", "bandwidth-put-65536-node-cuda-sm",
                    "bandwidth-get-65536-node-cuda-sm", "bandwidth-put-bi-65536-node-cuda",
                    "bandwidth-get-bi-65536-node-cuda", "bandwidth-put-bi-65536-node-cuda-sm",
                    "bandwidth-get-bi-65536-node-cuda-sm", "one-to-all-65536-node-cuda",
                    "all-to-one-65536-node-cuda-sm", "chase-1048576-node-cuda-sm",
                    "bandwidth-uni-65536-cross-ucx"));

void ask_for_all(SuiteRig& rig) {
  rig.option("p2p.sizes", "13,65536");
  rig.option("p2p.modes", "latency,rate,uni,bi,put,get,put-bi,get-bi,chase,one-to-all,all-to-one");
  std::string transports = "nccl,cuda,cuda-sm,mpi";
  if (!UcxCommunicator::version().empty()) transports += ",ucx";
  rig.option("p2p.transport", transports);
}

TEST_P(GpuP2p, MeasuresEveryLink) {
  const std::string name = GetParam();
  if (name.ends_with("ucx") && UcxCommunicator::version().empty()) GTEST_SKIP() << "built without UCX";
  P2pSuite suite;
  const bool cross = name.find("cross") != std::string::npos;
  SuiteRig on = rig(suite, cross ? 2 : 1);
  ask_for_all(on);
  if (!on.planned(name).not_applicable.empty()) GTEST_SKIP() << on.planned(name).not_applicable;
  const CaseRecord record = on.run(name);
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  EXPECT_EQ(record.miscompares(), 0u);
  EXPECT_EQ(on.total(static_cast<double>(record.rows_.size())),
            static_cast<double>(on.planned(name).entities));
  if (name.starts_with("selftest")) return;
  const std::string path = record.parameters_.at("path");
  const std::string wanted = name.ends_with("nccl")   ? "nccl 2."
                             : name.ends_with("mpi")  ? "mpi:staged "
                             : name.ends_with("sm")   ? "cuda/sm"
                             : name.ends_with("cuda") ? "cuda/ce"
                                                      : "";
  EXPECT_EQ(path.rfind(wanted, 0), 0u) << path;
}

/// A slow one is no suspect with less samples than an interval takes, however little time there is.
TEST_F(GpuSuites, AGpuInTheCentreIsMeasuredAgainWithEnoughSamples) {
  P2pSuite suite;
  SuiteRig on = rig(suite);
  ask_for_all(on);
  Case c = on.planned("one-to-all-65536-node-cuda");
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  c.seconds = 0;
  const CaseRecord before = on.run(c);
  ASSERT_EQ(before.rows_.size(), 1u);
  EXPECT_EQ(before.rows_.front().t.size(), 3u);
  RetestOrder retest;
  const bool chosen = on.world().rank() == 1;
  retest.devices = {static_cast<int>(on.world().max(chosen ? before.rows_.front().entity : -1.0))};
  c.retest = std::make_shared<const RetestOrder>(retest);
  const CaseRecord again = on.run(c);
  ASSERT_EQ(again.rows_.size(), chosen ? std::size_t{RetestOrder::visits} : 0);
  for (const auto& row : again.rows_) EXPECT_EQ(row.values.at("bandwidth").size(), 3u);
}

TEST_F(GpuSuites, HostsHaveNoLinksBetweenGpus) {
  P2pSuite p2p;
  SuiteRig pairs(p2p);
  ask_for_all(pairs);
  for (const Case& c : pairs.plan())
    if (c.name.find("-nccl") != std::string::npos || c.name.find("-cuda") != std::string::npos) {
      EXPECT_NE(c.not_applicable.find("none is measured"), std::string::npos) << c.name;
    }
  AllreduceSuite allreduce;
  SuiteRig groups(allreduce);
  for (const Case& c : groups.plan()) EXPECT_EQ(c.name.find("nccl"), std::string::npos) << c.name;
  groups.option("allreduce.transport", "nccl");
  for (const Case& c : groups.plan())
    if (c.name.find("nccl") != std::string::npos) {
      EXPECT_NE(c.not_applicable, "") << c.name;
    }
}

/// All operations over both transports, of 8 bytes and 64 KiB.
void ask_for_collectives(SuiteRig& on) {
  on.option("allreduce.sizes", "8,65536");
  on.option("allreduce.ops", "allreduce,reduce-scatter,all-gather,all-to-all,broadcast");
  on.option("allreduce.transport", "nccl,mpi");
}
void expect_exact(SuiteRig& on, const Case& c, const CaseRecord& record) {
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  EXPECT_EQ(record.miscompares(), 0u);
  EXPECT_EQ(on.total(static_cast<double>(record.rows_.size())), static_cast<double>(c.entities));
}

class GpuAllreduce : public GpuSuites, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cases, GpuAllreduce,
                         testing::Values("selftest-allreduce", "allreduce-world-8-nccl",
                                         "allreduce-world-65536-nccl", "allreduce-node-65536-nccl",
                                         "allreduce-leader-65536-nccl", "allreduce-world-65536-nccl-isolated",
                                         "reduce-scatter-world-65536-nccl", "all-gather-world-65536-nccl",
                                         "all-to-all-world-65536-nccl", "broadcast-world-65536-nccl",
                                         "allreduce-world-65536-mpi", "reduce-scatter-node-65536-mpi"));

TEST_P(GpuAllreduce, IsExact) {
  const std::string name = GetParam();
  AllreduceSuite suite;
  SuiteRig on = rig(suite, 2, Level::standard);
  ask_for_collectives(on);
  const Case c = on.planned(name);
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const CaseRecord record = on.run(c);
  expect_exact(on, c, record);
  if (record.rows_.empty() || name.starts_with("selftest")) return;
  const std::string path = record.parameters_.at("path");
  EXPECT_EQ(path.rfind(name.find("nccl") != std::string::npos ? "nccl 2." : "mpi:staged ", 0), 0u) << path;
}

class GpuVariants : public GpuSuites, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, GpuVariants,
    testing::Values("allreduce-world-8-nccl-in-place", "allreduce-world-65536-mpi-in-place",
                    "reduce-scatter-world-65536-nccl-in-place", "all-gather-node-65536-nccl-in-place",
                    "allreduce-world-65536-nccl-registered", "all-to-all-world-65536-nccl-registered",
                    "reduce-scatter-world-65536-nccl-symmetric", "allreduce-world-8-nccl-graph",
                    "allreduce-world-65536-nccl-graph-isolated", "broadcast-world-65536-nccl-graph"));

/// What changed in how NCCL was called tells that a variant did what its name says.
TEST_P(GpuVariants, AreExactAndWhatTheySay) {
  const std::string name = GetParam();
  AllreduceSuite suite;
  SuiteRig on = rig(suite, 2, Level::standard);
  ask_for_collectives(on);
  on.option("allreduce.variants", "plain,in-place,registered,symmetric,graph");
  const Case c = on.planned(name);
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
#ifdef ASSAY_CUDA_EMULATION
  const unsigned long buffers = emulatedNcclRegistered(false), windows = emulatedNcclRegistered(true);
#endif
  expect_exact(on, c, on.run(c));
#ifdef ASSAY_CUDA_EMULATION
  const bool all_to_all = name.starts_with("all-to-all");  // sends and receives
  EXPECT_EQ(emulatedNcclRegistered(false) > buffers, name.ends_with("-registered") && !all_to_all);
  EXPECT_EQ(emulatedNcclRegistered(true) > windows, name.ends_with("-symmetric"));
  EXPECT_EQ(emulation::counts().graphs > 0, name.find("-graph") != std::string::npos);
#endif
}

#ifdef ASSAY_CUDA_EMULATION
TEST_F(GpuSuites, BuffersThatNcclDoesNotRegisterAreSaidNotMeasured) {
  AllreduceSuite suite;
  SuiteRig on = rig(suite, 2, Level::standard);
  on.option("allreduce.sizes", "65536");
  on.option("allreduce.variants", "symmetric");
  const Case c = on.planned("allreduce-world-65536-nccl-symmetric");
  if (!c.not_applicable.empty()) GTEST_SKIP() << c.not_applicable;
  const Set refused("ASSAY_EMULATED_NCCL", "unregistered");
  const CaseRecord record = on.run(c);
  EXPECT_EQ(record.state_, CaseState::skip);
  EXPECT_NE(record.reason_.find("NCCL makes no symmetric window here"), std::string::npos) << record.reason_;
  EXPECT_TRUE(record.rows_.empty());
}
#endif

TEST_F(GpuSuites, NcclIsTheDefault) {
  AllreduceSuite suite;
  SuiteRig on = rig(suite);
  for (const Case& c : on.plan()) EXPECT_EQ(c.name.find("-mpi"), std::string::npos) << c.name;
  EXPECT_TRUE(on.planned("allreduce-world-1048576-nccl").required);
}

TEST_F(GpuSuites, TheNetworkIsFlooded) {
  CongestionSuite suite;
  SuiteRig on = rig(suite, 4, Level::smoke);
  on.option("suites", "congestion");
  if (on.size() < 4) GTEST_SKIP() << "fewer than 4 nodes";
  const CaseRecord record = on.run("bandwidth-131072-under-all-to-all-mpi");
  EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
  EXPECT_EQ(record.miscompares(), 0u);
}

#ifdef ASSAY_CUDA_EMULATION

/// On a busy machine the time of a case may end before the message that is corrupted: it gets more then.
CaseRecord run_corrupted(SuiteRig& on, const std::string& name) {
  for (const double seconds : {0.3, 2.0}) {
    CaseRecord record = on.run(on.planned(name), 60, seconds);
    if (on.total(static_cast<double>(record.records_.size())) > 0) return record;
  }
  return on.run(on.planned(name), 60, 10.0);
}

TEST_F(GpuSuites, AWrongElementOfNcclIsFoundAtItsPlace) {
  AllreduceSuite suite;
  SuiteRig on = rig(suite, 1, Level::standard);
  on.option("allreduce.sizes", "65536");
  const Set broken("ASSAY_EMULATED_NCCL", "corrupt:rank=1:nth=1:bytes=65536:element=7777");
  const CaseRecord record = run_corrupted(on, "allreduce-world-65536-nccl");
  EXPECT_EQ(record.state_, on.rank() == 1 ? CaseState::fail : CaseState::pass) << record.reason_;
  ASSERT_EQ(record.records_.size(), on.rank() == 1 ? 1u : 0u);
  if (on.rank() != 1) return;
  const auto& bad = record.records_.front();
  EXPECT_EQ(bad.index, 7777u);
  EXPECT_EQ(bad.expected ^ bad.actual, 0x10u);
  EXPECT_EQ(bad.reread, bad.actual);
  EXPECT_EQ(bad.entity, on.entities().device_of_rank(1));
}

TEST_F(GpuSuites, AWrongByteOfAMessageIsFoundAtItsPlace) {
  P2pSuite suite;
  SuiteRig on = rig(suite);
  ask_for_all(on);
  const Set broken("ASSAY_EMULATED_NCCL", "corrupt:rank=1:nth=2:bytes=65536:element=100");
  const CaseRecord record = run_corrupted(on, "bandwidth-bi-65536-node-nccl");
  ASSERT_EQ(record.records_.size(), on.rank() == 1 ? 1u : 0u) << record.reason_;
  if (on.rank() != 1) return;
  EXPECT_EQ(record.state_, CaseState::fail);
  EXPECT_EQ(record.records_.front().index, 400u / 8);
  EXPECT_EQ(record.records_.front().expected ^ record.records_.front().actual, 0x10u);
  EXPECT_EQ(record.records_.front().reread, record.records_.front().actual);
}

TEST_F(GpuSuites, AHungCollectiveEndsAndTheNextCaseRuns) {
  AllreduceSuite suite;
  SuiteRig on = rig(suite);
  on.option("allreduce.sizes", "65536");
  {
    const Set broken("ASSAY_EMULATED_NCCL", "hang:rank=1:nth=2:bytes=65536");
    std::string told;
    for (const double seconds : {0.3, 10.0}) {  // as in run_corrupted
      if (!told.empty()) break;
      try {
        on.run(on.planned("allreduce-world-65536-nccl"), 2 + seconds, seconds);
      } catch (const Error& e) {
        told = e.what();
      }
    }
    EXPECT_NE(told.find("on rank " + std::to_string(on.rank()) + " of"), std::string::npos) << told;
  }
  EXPECT_EQ(on.run("allreduce-world-65536-nccl").state_, CaseState::pass);
}

TEST_F(GpuSuites, PeersThatRefuseGoByWayOfTheHost) {
  const Set refused("ASSAY_EMULATED_NO_PEERS", "1");
  P2pSuite suite;
  SuiteRig on = rig(suite);
  ask_for_all(on);
  for (const char* name : {"bandwidth-put-65536-node-cuda", "bandwidth-get-65536-node-cuda-sm",
                           "bandwidth-put-bi-65536-node-cuda-sm", "bandwidth-get-bi-65536-node-cuda"}) {
    const CaseRecord record = on.run(name);
    EXPECT_EQ(record.miscompares(), 0u);
    EXPECT_EQ(record.state_, CaseState::pass) << record.reason_;
    EXPECT_EQ(on.total(static_cast<double>(record.rows_.size())),
              static_cast<double>(on.planned(name).entities));
    const std::string path = record.parameters_.at("path");
    EXPECT_EQ(path.rfind("cuda/refused mpi:staged", 0), 0u) << path;
    ASSERT_FALSE(record.events_.empty());
  }
  for (const char* name : {"one-to-all-65536-node-cuda", "chase-1048576-node-cuda-sm"}) {
    const CaseRecord record = on.run(name);
    EXPECT_EQ(record.state_, CaseState::skip) << "by way of the host is what MPI measures";
    EXPECT_NE(record.reason_, "");
    EXPECT_TRUE(record.rows_.empty());
  }
}

#endif

}  // namespace
}  // namespace assay
