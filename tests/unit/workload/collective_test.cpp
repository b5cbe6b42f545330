// SPDX-License-Identifier: Apache-2.0
#include "workload/collective.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::workload {
namespace {

/// Delivers nothing every second time.
class EverySecondLost final : public fakes::SelfCommunicator {
 public:
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    if (delivers()) SelfCommunicator::all_reduce(in, out, count, type, op);
  }
  void reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    if (delivers()) SelfCommunicator::all_reduce(in, out, count, type, op);
  }
  void all_gather(const void* in, void* out, std::size_t bytes) override {
    if (delivers()) SelfCommunicator::all_gather(in, out, bytes);
  }
  void all_to_all(const void* in, void* out, std::size_t bytes) override {
    if (delivers()) SelfCommunicator::all_to_all(in, out, bytes);
  }

 private:
  bool delivers() { return ++calls_ % 2 != 0; }
  int calls_ = 0;
};

TEST(Collective, WhatPrimingLeftIsNotTakenForAResult) {
  for (const Op operation : {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::all_to_all})
    for (const std::size_t bytes : {4U, 4096U}) {
      EverySecondLost comm;
      std::vector<std::byte> arena(4 * slot_bytes(operation, bytes, 1));
      Collective collective(comm, operation, bytes, arena, 4, 7);
      for (std::size_t times = 1; times <= 2; ++times) {
        collective.prepare(1);
        collective.prime();
        collective.run(1);
        collective.verify();
        ASSERT_EQ(collective.wrong().size(), times) << static_cast<int>(operation) << " " << bytes;
        EXPECT_EQ(collective.wrong().back().errors.count, bytes / sizeof(float));
      }
    }
}

}  // namespace
}  // namespace assay::workload
