// SPDX-License-Identifier: Apache-2.0
// Small questions to the operating system that several layers ask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay {

/// Host name of the kernel, without the domain.
std::string host_name();

/// The whole of a text file, trailing white space removed; nullopt with `errno` when it cannot be read, EFBIG
/// when it has more than `most` bytes.
std::optional<std::string> read_text(const std::string& path, std::size_t most = std::size_t{16} << 20);

/// The file that a chain of symbolic links leads to, which may not exist yet.
std::filesystem::path target_of(std::filesystem::path file);

/// Throws Error(usage) naming `option` where no file system takes the name of a file, which is written under
/// a longer one (NAME.partial) first.
void check_name_length(const std::string& option, const std::string& file);

/// A whole number from such a file; nullopt when absent or no number.
std::optional<std::int64_t> read_integer(const std::string& path);

/// Rank, size and node-local rank as the launcher's environment tells them before MPI_Init (Open MPI, PMIx,
/// PMI, Slurm). -1 where unknown; `launched` is false for a singleton.
struct LaunchEnvironment {
  bool launched = false;
  int rank = -1;
  int size = -1;
  int local_rank = -1;
  int local_size = -1;
  std::string launcher;              ///< "openmpi", "slurm", "pmi", "none"
  bool oversubscribe_asked = false;  ///< told to start more processes than cores: mpirun --oversubscribe or
                                     ///< --map-by ...:OVERSUBSCRIBE, srun --overcommit
};
LaunchEnvironment launch_environment();

/// True when this process should speak for all before MPI is up: a singleton, or the rank that the launcher
/// calls 0.
bool speaks_for_all();

/// CPUs this process may run on (sched_getaffinity), ascending.
std::vector<int> allowed_cpus();

/// "0-3,8" for {0,1,2,3,8}, and back; the second throws Error(usage) on nonsense.
std::string format_cpu_list(const std::vector<int>& cpus);
std::vector<int> parse_cpu_list(const std::string& text);

/// Hands memory that was freed back to the system, where the C library keeps it: what thousands of nodes say
/// of themselves is needed at the start only.
void release_free_memory() noexcept;

/// The controller that a file of a cgroup belongs to: what stands before its dot.
std::string controller_of(const std::string& file);

}  // namespace assay
