// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_path.hpp"

#include <gtest/gtest.h>

namespace assay::ucx {
namespace {

TEST(UcxPath, LanesAreNamedOnceEach) {
  constexpr auto text = R"(#
# UCP endpoint
#
#               peer: vnode02:4711
#                 lane[0]:  2:sysv/memory.0 md[2]           -> md[2]/sysv/sysdev[255] am am_bw#0
#                 lane[1]:  5:cma/memory.0 md[4]            -> md[4]/cma/sysdev[255] rma_bw#0
#                 lane[2]: 11:rc_mlx5/mlx5_0:1.0 md[5]      -> md[5]/ib/sysdev[3] rma_bw#1
#                 lane[3]: 11:rc_mlx5/mlx5_0:1.1 md[5]      -> md[5]/ib/sysdev[3] rma_bw#2 wireup
#
#                tag_send: 0..<egr/short>..8185..<egr/bcopy>..8192..<rndv>..(inf)
)";
  EXPECT_EQ(path_from_info(text), "cma/memory+rc_mlx5/mlx5_0:1+sysv/memory");
}

TEST(UcxPath, WithoutInformationThePathIsEmpty) {
  EXPECT_EQ(path_from_info(""), "");
  EXPECT_EQ(path_from_info("# UCP endpoint\n#  no lanes\n"), "");
  EXPECT_EQ(path_from_info("lane[0]"), "");
  EXPECT_EQ(path_from_info("lane[0]: stub"), "");
}

}  // namespace
}  // namespace assay::ucx
