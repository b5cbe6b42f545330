// SPDX-License-Identifier: Apache-2.0
// Whether MPI may be given GPU memory.
#pragma once

#include <string>

#include "device/device.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// MPI's own statement: true only where it has such a query and it returns yes. No proof.
bool mpi_says_cuda();

/// The proof: every rank sends to the next one from its arena, 1 KiB and 4 MiB (eagerly and by rendezvous),
/// and each byte is checked. Collective over `mpi`, which need not support GPUs. Empty when it works
/// everywhere, else what went wrong first. An MPI that cannot ends the program by a segmentation fault, which
/// is then explained. The arena holds 8 MiB at least.
std::string test_gpu_direct(Communicator& mpi, Device& device);

}  // namespace assay
