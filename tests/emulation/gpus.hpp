// SPDX-License-Identifier: Apache-2.0
// The GPUs that a test pretends to have: the file that ASSAY_FAKE_GPUS names (tests/fake_gpus).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace emulation {

struct Gpu {
  std::string uuid, name, pci;  ///< "GPU-...", "...", "00000000:17:00.0"
  std::size_t memory_bytes = std::size_t{1} << 30;
  int sm_count = 8, major = 9, minor = 0;
  bool ecc = true;
  /// "lost": it cannot be described; "busy": somebody else has it for himself; "exclusive": it takes one
  /// process; "ecc": what was started on it fails; "engine": it gives no stream; "late": what was started on
  /// it fails once somebody has a stream of it; "large": it gives no large piece of memory then, "stream": no
  /// second stream; "no-image": the program has no code for it; "wait12": from the 12th wait on after it gave
  /// a stream, waits for what was started on it fail. By "host rank" too: "ecc@1" only in the process whose
  /// OMPI_COMM_WORLD_RANK is 1.
  std::string fault;
};

/// Of this host, those that CUDA_VISIBLE_DEVICES leaves, in its order. Empty without a file.
const std::vector<Gpu>& gpus();

}  // namespace emulation
