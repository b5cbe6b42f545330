// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "fresh.hpp"
#include "kernels/stream.hpp"

namespace assay {
namespace {

using kernels::StreamOp;
using kernels::host::Stores;
namespace host = kernels::host;

class Stream : public test::LinkRetest {
 protected:
  /// Small integers: sums and multiply-adds are exact, fused or not.
  std::vector<double> integers(std::size_t n) {
    std::vector<double> v(n);
    for (double& x : v) x = static_cast<double>(below(1000));
    return v;
  }
};

TEST_F(Stream, EveryOperationSizeAlignmentAndKindOfStoreIsExact) {
  for (const Stores stores : {Stores::automatic, Stores::cached, Stores::streaming}) {
    for (std::size_t trial = 0; trial < 120; ++trial) {
      const std::size_t count = trial < 40 ? trial : below(3000), shift = below(9);
      const auto b = integers(count + shift), c = integers(count + shift + 3);
      std::vector<double> a(count + shift + 16, std::nan(""));
      for (const StreamOp op : {StreamOp::write, StreamOp::copy, StreamOp::triad}) {
        std::fill(a.begin(), a.end(), std::nan(""));
        EXPECT_EQ(host::stream(op, a.data() + shift, b.data() + shift, c.data() + 3, count, stores), 0.0);
        for (std::size_t i = 0; i < a.size(); ++i) {
          if (i < shift || i >= shift + count) {
            ASSERT_TRUE(std::isnan(a[i])) << to_string(op) << " wrote outside, count " << count;
            continue;
          }
          const double from_b = b[i], from_c = c[i - shift + 3];
          const double expected = op == StreamOp::write  ? 0.75
                                  : op == StreamOp::copy ? from_b
                                                         : from_b + 3.0 * from_c;
          ASSERT_EQ(a[i], expected) << to_string(op) << " at " << i - shift << " of " << count;
        }
      }
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += b[i + shift];
      std::vector<double> read_only = b;
      EXPECT_EQ(host::stream(StreamOp::read, read_only.data() + shift, nullptr, nullptr, count, stores), sum)
          << count;
      EXPECT_EQ(read_only, b);
    }
  }
}

TEST(StreamTraffic, IsCountedAsStreamCountsIt) {
  EXPECT_EQ(kernels::stream_bytes_per_element(StreamOp::read), 8u);
  EXPECT_EQ(kernels::stream_bytes_per_element(StreamOp::write), 8u);
  EXPECT_EQ(kernels::stream_bytes_per_element(StreamOp::copy), 16u);
  EXPECT_EQ(kernels::stream_bytes_per_element(StreamOp::triad), 24u);
}

}  // namespace
}  // namespace assay
