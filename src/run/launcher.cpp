// SPDX-License-Identifier: Apache-2.0
#include "run/launcher.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "base/error.hpp"
#include "base/hostlist.hpp"
#include "base/system.hpp"
#include "transport/mpi_communicator.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    if (access((rest.substr(0, colon) + "/" + program).c_str(), X_OK) == 0) return true;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return false;
}

/// The directory of the bundle that this program is of; its script names it. Empty outside a bundle.
fs::path bundle() {
  const char* named = std::getenv("ASSAY_BUNDLE");
  std::error_code code;
  const bool ours =
      named != nullptr && fs::equivalent(fs::path(named) / "libexec/assay", "/proc/self/exe", code);
  return ours ? named : "";
}

}  // namespace

LocalMachine local_machine(int gpus) {
  LocalMachine machine;
  machine.gpus = gpus;
  machine.mpirun = in_path("mpirun");
  std::set<std::int64_t> sockets;
  const auto cpus = allowed_cpus();
  for (const int cpu : cpus)
    sockets.insert(
        read_integer(fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu))
            .value_or(0));
  machine.sockets = std::max(1, static_cast<int>(sockets.size()));
  machine.cpus = std::max(1, static_cast<int>(cpus.size()));
  machine.yield_told = std::getenv("OMPI_MCA_mpi_yield_when_idle") != nullptr;
  machine.open_mpi = mpi_versions()["mpi"].starts_with("Open MPI");
  return machine;
}

std::vector<std::string> local_launcher(const LocalMachine& machine) {
  const int ranks = machine.gpus > 0 ? machine.gpus : machine.sockets;
  if (ranks < 2 || !machine.mpirun) return {};
  if (!machine.open_mpi) return {"mpirun", "-n", std::to_string(ranks)};
  std::vector<std::string> words{
      "mpirun",    "--mca", "orte_execute_quiet", "1", "-n", std::to_string(ranks), "--oversubscribe",
      "--bind-to", "none"};
  if (ranks <= machine.cpus && !machine.yield_told)
    words.insert(words.end(), {"--mca", "mpi_yield_when_idle", "0"});
  return words;
}

std::vector<std::string> launcher_words(const std::string& command, const std::set<std::string>& excluded) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  const auto end_word = [&] {
    if (begun) words.push_back(std::move(word));
    word.clear();
    begun = false;
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      begun = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      end_word();
    } else {
      word += c == '\\' && quote != '\'' && i + 1 < command.size() ? command[++i] : c;
      begun = true;
    }
  }
  if (quote != 0) throw_usage("--launcher: a quote is not closed");
  end_word();
  if (words.empty()) throw_usage("--launcher: no command");
  constexpr std::string_view place = "{exclude}";
  std::erase_if(words,
                [&](const std::string& w) { return excluded.empty() && w.find(place) != std::string::npos; });
  std::string nodes = fmt::format("{}", fmt::join(excluded, ","));
  if (nodes.size() > long_list) nodes = compress_hostlist({excluded.begin(), excluded.end()});
  for (std::string& w : words)
    if (const auto at = w.find(place); at != std::string::npos) w.replace(at, place.size(), nodes);
  return words;
}

bool starts_at_once(const std::string& command) {
  if (command.empty()) return true;
  static const std::set<std::string> direct{"mpirun", "mpiexec", "orterun", "prterun"};
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"})
    if (const char* job = std::getenv(name); job != nullptr && *job != '\0') return true;
  static const std::set<std::string> queued{"salloc", "srun", "qsub", "bsub", "flux"};
  bool at_once = false;
  for (const std::string& word : launcher_words(command, {})) {
    const std::string name = fs::path(word).filename().string();
    if (queued.contains(name)) return false;                               // salloc -N 4 mpirun
    at_once = at_once || direct.contains(name.substr(0, name.find('.')));  // mpiexec.hydra
  }
  return at_once;
}

NextLaunch next_launch(const std::vector<Attempt>& attempts, const std::set<std::string>& excluded,
                       int relaunches, double left_s, double least_s) {
  NextLaunch next{false, excluded};
  const Attempt& last = attempts.back();
  if (last.complete || last.told || (last.lost.empty() && !last.stuck)) return next;
  if (static_cast<int>(attempts.size()) > relaunches || left_s < least_s) return next;
  std::set<std::string> rest;
  std::set_difference(last.nodes.begin(), last.nodes.end(), last.lost.begin(), last.lost.end(),
                      std::inserter(rest, rest.end()));
  if (!last.lost.empty() && !rest.empty()) {
    next.exclude.insert(last.lost.begin(), last.lost.end());
    next.wanted = true;
    return next;
  }
  if (!last.file && !last.partial) return next;
  const bool before = attempts.size() > 1 && attempts[attempts.size() - 2].lost == last.lost;
  next.wanted = !before;
  return next;
}

namespace {
constexpr double closing_rate = 5e6;  // B/s
}  // namespace

// PMIx 4.2 deadlocks in mpirun when a rank is killed while it connects. The ranks end the run themselves
// at 1.1 times its budget and 5 s (Controller::run_deadline_s) after memory and devices are prepared, which a
// large or busy machine takes long for; a launcher of thousands of ranks takes some seconds to end. A gate of
// 15 s has no such machine behind it. 100,000 ranks on 2 cores took 146 s from the last of 9 cases (1.2 GB)
// on.
bool launcher_overdue(double begun_s, double written_s, double budget_s, std::uint64_t bytes) {
  const double start_s = std::clamp(2 * budget_s, 10.0, 120.0), end_s = std::clamp(budget_s, 10.0, 60.0);
  const double closing_s = static_cast<double>(bytes) / closing_rate;
  return written_s > end_s || begun_s > start_s + 1.1 * budget_s + 5 + end_s + closing_s;
}

// A file server that fails over takes up to a minute, and what another host wrote there is seen up to a
// minute later.
bool writer_silent(double still_s, std::optional<std::uint64_t> bytes) {
  constexpr double patience_s = 120;
  return bytes && still_s > patience_s + static_cast<double>(*bytes) / closing_rate;
}

std::string program_of_ranks() {
  const fs::path root = bundle();
  return root.empty() ? fs::read_symlink("/proc/self/exe") : root / "bin/assay";
}

void launch_with_system_libraries() {
  const char* listed = std::getenv("LD_LIBRARY_PATH");
  const fs::path root = bundle();
  if (listed == nullptr || root.empty()) return;
  std::string kept;
  std::istringstream directories(listed);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (!directory.starts_with(root.string() + "/")) kept += (kept.empty() ? "" : ":") + directory;
  ::setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
}

}  // namespace assay
