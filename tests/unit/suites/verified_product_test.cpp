// SPDX-License-Identifier: Apache-2.0
#include "workload/verified_product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

/// On a slow device the products of inputs that were not reached could last longer than the whole case.
TEST(VerifiedProduct, ADigestIsGivenUpWhenItsTimeIsOver) {
  const auto device = make_host_device({allowed_cpus().front()}, {0}, false);
  workload::ProductLayout layout = workload::make_product_layout(NumType::fp32, {64, 64, 64}, 0, 1 << 30);
  layout.inputs = 4;
  layout.outputs = 4;
  std::vector<std::uint64_t> digests;
  for (const std::uint64_t reached : {0U, 1U, 4U}) {
    std::vector<std::byte> memory(layout.bytes() + 64);
    auto* base = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    workload::VerifiedProduct product(*device, NumType::fp32, {64, 64, 64}, layout, base,
                                      RandomStream(7, "a"), {});
    product.queue(reached);
    product.check();
    std::uint64_t asked = 0;
    const auto part = product.digest([&] { return ++asked < 2; });
    EXPECT_EQ(part.has_value(), reached == 4) << reached;
    EXPECT_EQ(asked, std::min<std::uint64_t>(2, 4 - reached));
    digests.push_back(*product.digest());
  }
  EXPECT_EQ(digests[0], digests[2]);
  EXPECT_EQ(digests[1], digests[2]);
}

}  // namespace
}  // namespace assay
