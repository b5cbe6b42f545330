// SPDX-License-Identifier: Apache-2.0
// Cases of collectives in place, with registered buffers and as graphs.
#include <gtest/gtest.h>

#include <utility>

#include "comm_planner.hpp"
#include "suites/allreduce/allreduce_plan.hpp"
#include "suites/allreduce/allreduce_suite.hpp"

namespace assay {
namespace {

using namespace comm_plan;

TEST(CommPlan, VariantsOfCollectivesAreCasesOfTheirOwn) {
  const AllreduceSuite allreduce;
  const auto cases = Planner(allreduce, Level::quick)
                         .option("allreduce.variants", "plain,in-place,graph,symmetric")
                         .option("allreduce.ops", "allreduce,all-gather,broadcast,all-to-all")
                         .option("allreduce.sizes", "64MiB")
                         .plan(topology_of(2, 2, 2));
  const Case& plain = find(cases, "allreduce-world-67108864-mpi");
  const Case& in_place = find(cases, "allreduce-world-67108864-mpi-in-place");
  EXPECT_EQ(plain.parameters.at("slots"), 2);
  EXPECT_EQ(in_place.parameters.at("slots"), 2);
  EXPECT_EQ(2 * in_place.bytes, plain.bytes);
  EXPECT_EQ(allreduce::spec_of(in_place).name(), in_place.name);
  for (const auto& [name, reason] :
       {std::pair("allreduce-world-67108864-mpi-graph", "only NCCL's operations go into a CUDA graph"),
        std::pair("allreduce-world-67108864-mpi-symmetric", "only NCCL registers buffers"),
        std::pair("broadcast-world-67108864-mpi-in-place", "a broadcast is always in place"),
        std::pair("all-to-all-world-67108864-mpi-in-place", "the operation has no in-place form"),
        std::pair("all-gather-world-67108864-mpi-in-place", "over MPI only allreduce is measured in place")})
    EXPECT_EQ(find(cases, name).not_applicable, reason) << name;
}

}  // namespace
}  // namespace assay
