// SPDX-License-Identifier: Apache-2.0
// Which algorithm, and for `best` cases which shape, the GPUs of the job multiply with: found once on rank 0,
// the same for all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "suite/suite.hpp"

namespace assay::gemm {

struct Choice {
  GemmShape shape;
  std::string algorithm;  ///< as GemmAlgorithm::name; "own:..." on a device that cannot run what rank 0 chose
  int candidates = 0;
};
using Choices = std::map<std::string, Choice>;  ///< by case name

/// Collective over `world`. Lacks, on all ranks, the cases for which rank 0 found nothing; all of them on
/// hosts, whose libraries choose by themselves. The cases' shapes are those of their parameters. Exact passes
/// are left out: their results do not depend on the algorithm. For `go_on` see Suite::prepare.
Choices choose(const std::vector<Case>& cases, std::uint64_t seed, Device& device, Communicator& world,
               const std::function<bool()>& go_on);

/// The shapes that `best` cases look through; all dimensions are multiples of 256.
const std::vector<GemmShape>& shapes_to_search();

}  // namespace assay::gemm
