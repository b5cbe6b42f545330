// SPDX-License-Identifier: Apache-2.0
// The decisions of a run without a launcher: the launcher's command line, and when it is launched again.
// Starts no processes.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace assay {

/// What the number of ranks on this machine is derived from.
struct LocalMachine {
  int gpus = 0;     ///< that this build can measure with
  int sockets = 1;  ///< with CPUs that this process may use
  int cpus = 1;     ///< that this process may use
  bool mpirun = true;
  bool yield_told = false;  ///< the environment says whether ranks that wait yield their core
  bool open_mpi = true;     ///< this program's MPI library; others' mpirun has other options
};
LocalMachine local_machine(int gpus);

/// mpirun with one rank per GPU, or per socket where there is none. Unbound, as scripts/launch.sh starts
/// them: each takes its share, and no core is left out. Empty where one rank does, which needs no launcher,
/// or where there is no mpirun.
std::vector<std::string> local_launcher(const LocalMachine& machine);

/// Bytes of names beyond which they get brackets: Linux takes at most 128 KiB in a word.
inline constexpr std::size_t long_list = 64UL << 10;

/// The words of a launcher's command line, quoted as for a shell. `{exclude}` in a word becomes the nodes
/// that are left out, separated by commas (over 64 KiB with brackets, n[01-16,20]); a word that holds it is
/// left out where there are none. Throws Error(usage) for an open quote or no word.
std::vector<std::string> launcher_words(const std::string& command, const std::set<std::string>& excluded);

/// Whether a launcher starts ranks at once: mpirun does, and every launcher inside of a batch job; empty: the
/// local one. Others, as srun outside of a job, or salloc before mpirun, may wait in a queue first. Throws
/// Error(usage) as above.
bool starts_at_once(const std::string& command);

/// What starts this program on any host. The program of a bundle finds its libraries only by its script.
std::string program_of_ranks();

/// Takes the libraries of the bundle out of the environment: a launcher, and the ssh that it starts, use
/// those of the machine.
void launch_with_system_libraries();

/// How one launch of a run ended.
struct Attempt {
  bool file = false;            ///< a results file, closed
  bool partial = false;         ///< partial results of a run whose rank 0 was lost
  bool complete = false;        ///< nothing was lost in it
  bool damaged = false;         ///< it lacks what could not be read of an earlier launch
  bool told = false;            ///< ended by a signal, a usage or an internal error
  bool stuck = false;           ///< ranks waited for each other without an attributed cause
  bool unnamed = false;         ///< a rank was lost before its host was known: the file measures nothing
  std::set<std::string> nodes;  ///< that took part, or were asked where the launch did not begin
  std::set<std::string> lost;   ///< of those; that do not answer
};

struct NextLaunch {
  bool wanted = false;
  std::set<std::string> exclude;  ///< of all launches so far, and of this one
};

/// Whether to launch again after the last of `attempts`: without the lost nodes; unchanged if no other node
/// is left or the cause is unknown; not after the same loss twice. A launch that did not begin is repeated
/// without the nodes that do not answer only.
NextLaunch next_launch(const std::vector<Attempt>& attempts, const std::set<std::string>& excluded,
                       int relaunches, double left_s, double least_s);

/// True where a launcher is to be ended, since the run it started must be over. `begun_s`: time since the run
/// began, negative before; `written_s`: time since the results file was closed, negative before.
/// `bytes`: of the cases that it has to judge and to close in one file.
bool launcher_overdue(double begun_s, double written_s, double budget_s, std::uint64_t bytes);

/// True where rank 0's supervisor must be gone, or cut off, with the file that it writes: it shows every 10 s
/// that it lives, but while it judges and closes `bytes`. `still_s`: time without that.
/// False where the size is unknown.
bool writer_silent(double still_s, std::optional<std::uint64_t> bytes);

}  // namespace assay
