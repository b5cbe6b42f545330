// SPDX-License-Identifier: Apache-2.0
// What a GPU cannot exceed, computed from what the driver says of it; no table of product names.
#pragma once

#include <string>

#include "topology/topology.hpp"

namespace assay {

/// What of a rate a healthy GPU reaches of its bound. A floor of 0: the share is shown and not judged.
struct BoundFraction {
  const char* of;
  double floor;
  const char* source;
};
namespace bounded {
inline constexpr BoundFraction memory{"memory bandwidth", 0.75,
                                      "triad reaches 0.85 to 0.93 on HBM; ECC takes up to 0.1 more of GDDR"};
inline constexpr BoundFraction local_copy{"copies inside a GPU's memory", 0,
                                          "the driver takes threads or copy engines, which reach less"};
inline constexpr BoundFraction host_copy{"copies from and to the host", 0.6,
                                         "packets of 128 to 256 bytes carry 0.79 to 0.9; 52 to 56 of 63 GB/s "
                                         "on H100 (Azure ND H200 v5, nvbandwidth issue 24)"};
inline constexpr BoundFraction product{"products of n = 4096 or more", 0.3,
                                       "0.4 (boards of 70 W) to 0.85 at the power limit"};
inline constexpr BoundFraction nvlink_copy{"put and get by NVLink from 64 MiB on", 0.6,
                                           "376 of 478 GB/s on H100, 749 of 956 both ways (nccl issue "
                                           "1264); 770 of 956 on GB200"};
inline constexpr BoundFraction nvlink_message{"send and receive by NVLink from 64 MiB on", 0.5,
                                              "NCCL plans 0.78 of a link (graph/topo.h) for the kernels"};
inline constexpr BoundFraction nvlink_collective{"busbw by NVLink from 256 MiB on", 0.55,
                                                 "365 of 478 GB/s on H100 without NVLS (nccl issue 1455)"};
inline constexpr BoundFraction network_message{"messages between nodes from 64 MiB on", 0.5,
                                               "46 to 48 of 50 GB/s of a NIC (nccl-tests issue 290)"};
inline constexpr BoundFraction network_collective{
    "busbw between nodes from 256 MiB on", 0.35,
    "0.9 of the NICs by rings, of which the bound of trees is up "
    "to twice as high"};
inline constexpr BoundFraction peer_pcie{"between GPUs by PCIe", 0,
                                         "bridges and sockets between the GPUs are not known"};
}  // namespace bounded

struct GpuBound {
  double rate = unsupported;  ///< B/s or FLOP/s; NaN where a figure is missing or the architecture is unknown
  const char* by = "";        ///< what bounds it, for people
  double floor = 0;           ///< fraction of `rate` below which the GPU is found slow
  bool known() const noexcept { return rate > 0; }
};

/// Memory clock times two transfers times bus width.
GpuBound memory_bound(const Gpu& gpu);
/// The same of what cudaMemcpy reads and writes inside the memory.
GpuBound local_copy_bound(const Gpu& gpu);

/// Host link, one way: transfers per second times lanes times encoding (8b/10b, 128b/130b, PCIe 6: 242 of 256
/// bytes).
GpuBound host_link_bound(const Gpu& gpu);

/// Products of matrices of a number type: multiprocessors times their highest clock times dense operations
/// per clock (base/gpu_architecture.hpp). Unknown where the table has no such compute capability.
GpuBound math_bound(const Gpu& gpu, const std::string& dtype);

/// What a case does between GPUs: one of them reads or writes the memory of the other, NCCL sends to it, or
/// many reduce.
enum class LinkUse { copy, message, collective };

/// What bounds a case inside nodes or across them, and its floor, without a rate. Parts of it with another
/// bound, or of which the way is not certain, have none.
GpuBound link_bound_of_case(const Topology& topology, LinkUse use, bool across_nodes);

/// Of the NVLinks of a GPU together, B/s one way: the most of all GPUs; 0 where there are none.
double fastest_nvlinks(const Topology& topology);

/// One way between the GPUs of two ranks. In a node by the NVLinks between them (all that are up, where they
/// lead to switches), else by the slower PCIe link; between nodes by the slower of PCIe and NICs. The NICs of
/// a GPU are those next to it, shared with the other GPUs that are next to them.
GpuBound pair_bound(const Topology& topology, LinkUse use, int rank_a, int rank_b);

/// Copies one way between the GPU of a rank and all others of its node together: its NVLinks, or no more than
/// the links to all of them carry; its PCIe link where one of them is not linked.
GpuBound star_bound(const Topology& topology, int rank);

/// Bus bandwidth of all-reduce, reduce-scatter and all-gather among `ranks`: the NVLinks of a GPU, else its
/// PCIe link, and between m nodes the NICs next to a node's GPUs x ((n-1)/n)/((m-1)/m), as a node need not
/// send more than (m-1)/m of the vector twice. Reductions in switches (NVLS) may exceed the bound by NVLinks.
GpuBound collective_bound(const Topology& topology, const std::vector<int>& ranks);

}  // namespace assay
