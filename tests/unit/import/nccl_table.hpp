// SPDX-License-Identifier: Apache-2.0
// An output of nccl-tests.
#pragma once

#include <string>
#include <vector>

namespace assay::imports {

/// Of one rank on each node that `devices` names.
inline std::string table(const std::vector<std::string>& devices, const std::string& busbw = "244.78",
                         const std::string& wrong = "0", const std::string& time = "1028.1") {
  std::string text =
      "some launcher talks here\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg "
      "iters: 1 validation: 1 "
      "graph: 0\n#\n# Using devices\n";
  for (std::size_t i = 0; i < devices.size(); ++i)
    text += "#  Rank " + std::to_string(i) + " Group  0 Pid   6899 on " + devices[i] + " device  " +
            std::to_string(i % 2) + " [0000:04:00] NVIDIA H100 80GB HBM3\n";
  return text +
         "#\n#                                                              out-of-place                     "
         "  in-place\n"
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   "
         "algbw   busbw #wrong\n"
         "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "
         "(GB/s)  (GB/s)\n"
         "           8             2     float     sum      -1    28.91    0.00    0.00      0    28.76    "
         "0.00    0.00      0\n"
         "   134217728      33554432     float     sum      -1   " +
         time + "  130.55  " + busbw + "      " + wrong +
         "   1031.2  130.16  244.05    N/A\n"
         "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 122.207\n";
}

}  // namespace assay::imports
