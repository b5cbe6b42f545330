// SPDX-License-Identifier: Apache-2.0
// Inside of the MPI transport; tests use it to force the code paths of very large messages on small ones.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/heartbeat.hpp"
#include "transport/communicator.hpp"

namespace assay::mpi {

/// The most that one MPI call is given as a plain count. Below INT_MAX so that libraries that add headers
/// stay in range.
inline constexpr std::size_t count_limit = std::size_t{1} << 30;

/// The ranks of `comm` as MPI_COMM_WORLD numbers them.
std::vector<std::int32_t> world_ranks(MPI_Comm comm, int size);

/// Takes over `comm` and frees it. Calls are marked on `heartbeat`, where one is given. `path` is what
/// describe_path() said: it is asked once, since the answer takes a while. Messages beyond `limit` bytes, and
/// reductions beyond `limit` elements, are split.
std::unique_ptr<Communicator> make_communicator(MPI_Comm comm, const std::string& path,
                                                std::size_t limit = count_limit,
                                                supervisor::Heartbeat* heartbeat = nullptr);

/// MPI_COMM_WORLD, duplicated, with errors returned.
std::unique_ptr<Communicator> duplicate_world(std::size_t limit = count_limit,
                                              supervisor::Heartbeat* heartbeat = nullptr);

/// What carries messages, from the MPI tool interface: "ob1/self,tcp,vader", "ucx", "cm/psm2";
/// "requested:..." when only the wish is known, "mpi" when nothing is.
std::string describe_path();

}  // namespace assay::mpi
