// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/heartbeat.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// MPI for the life of the process: initialises in the constructor (SERIALIZED where it can be had, FUNNELED
/// at least), finalises in the destructor when the program ends in order. Exactly one exists.
class MpiSession {
 public:
  /// Communicator calls are marked on `heartbeat`, where one is given.
  MpiSession(int* argc, char*** argv, supervisor::Heartbeat* heartbeat = nullptr);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& launch() noexcept { return *launch_; }
  /// All ranks of the launch, or those that the last `keep` left.
  Communicator& world() noexcept { return part_ ? *part_ : *launch_; }
  /// Collective on the launch: makes `members` (its ranks, ascending) the world of those among them, and the
  /// rest a world of their own. Whether this rank is a member. Ends the world before.
  bool keep(const std::vector<int>& members);
  /// Ranks of the launch that share this node's memory (MPI_Comm_split_type), in its order. Collective on the
  /// launch.
  std::unique_ptr<Communicator> split_node();
  double init_seconds() const noexcept { return init_s_; }
  /// Ends the job at once with `code` on all ranks; does not return.
  [[noreturn]] void abort(int code);

 private:
  std::unique_ptr<Communicator> launch_, part_;
  supervisor::Heartbeat* heartbeat_;
  double init_s_ = 0;
};

/// Versions of the MPI this build uses: "mpi" -> "Open MPI 4.1.4", "mpi.standard" -> "3.1"; with a
/// communicator also the path its messages take: "mpi.path" -> "ob1/self,tcp,vader". May be called before
/// MPI_Init.
std::map<std::string, std::string> mpi_versions(const Communicator* world = nullptr);

}  // namespace assay
