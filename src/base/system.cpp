// SPDX-License-Identifier: Apache-2.0
#include "base/system.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.hpp"

namespace assay {
namespace {

constexpr int kMaxCpu = 1 << 20;

template <typename Integer>
std::optional<Integer> to_integer(std::string_view text, int base = 10) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int environment_integer(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : to_integer<int>(text).value_or(-1);
}

// Slurm gives its batch script and login shell SLURM_PROCID=0 too, and numbers those steps from the top of 32
// bits.
bool in_slurm_step() {
  const char* text = std::getenv("SLURM_STEP_ID");
  if (text == nullptr) text = std::getenv("SLURM_STEPID");
  if (text == nullptr) return false;
  const auto step = to_integer<std::uint64_t>(text);
  return step && *step < 0xfffffff0ULL;
}

/// Tasks of a node of the step, from "8(x511),4": as many nodes as stand behind x have so many. -1 where
/// nothing tells.
int slurm_local_size() {
  const char* text = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  int node = environment_integer("SLURM_NODEID");
  std::string_view rest = text == nullptr || node < 0 ? "" : text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const auto times = item.find("(x");
    const auto tasks = to_integer<int>(item.substr(0, times));
    std::optional<int> nodes = 1;
    if (times != std::string_view::npos)
      nodes = item.ends_with(')') ? to_integer<int>(item.substr(times + 2, item.size() - times - 3)) : 0;
    if (!tasks || !nodes || *nodes < 1) return -1;
    if (node < *nodes) return *tasks;
    node -= *nodes;
  }
  return -1;
}

/// Ranks of this node as the batch system tells them, where its step has all ranks of the launch.
int local_size_of_step(int size) {
  if (in_slurm_step()) return size == environment_integer("SLURM_STEP_NUM_TASKS") ? slurm_local_size() : -1;
  if (const int local = environment_integer("PALS_LOCAL_SIZE"); local > 0) return local;
  // Flux tells no number of a node; ranks are spread evenly.
  const int nodes = environment_integer("FLUX_JOB_NNODES");
  return nodes > 0 && size > 0 && size == environment_integer("FLUX_JOB_SIZE") ? (size - 1) / nodes + 1 : -1;
}

void add_slurm(LaunchEnvironment& env) {
  if (env.size < 0) env.size = environment_integer("SLURM_STEP_NUM_TASKS");
  if (env.size < 0) env.size = environment_integer("SLURM_NTASKS");
  env.local_rank = environment_integer("SLURM_LOCALID");
}

bool oversubscribe_asked() {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  return text("OMPI_MCA_rmaps_base_oversubscribe") == "1" || text("SLURM_OVERCOMMIT") == "1" ||
         text("OMPI_MCA_rmaps_base_mapping_policy").find(":OVERSUBSCRIBE") != std::string::npos;
}

}  // namespace

std::string host_name() {
  utsname name{};
  if (uname(&name) != 0) return "localhost";
  const std::string full = name.nodename;
  return full.substr(0, full.find('.'));
}

std::optional<std::string> read_text(const std::string& path, std::size_t most) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[8192];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) break;
    if (n < 0 || text.size() + static_cast<std::size_t>(n) > most) {
      const int why = n < 0 ? errno : EFBIG;
      close(fd);
      errno = why;
      return std::nullopt;
    }
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  const auto last = text.find_last_not_of(" \t\r\n\v\f");
  text.resize(last == std::string::npos ? 0 : last + 1);
  return text;
}

std::filesystem::path target_of(std::filesystem::path file) {
  std::error_code ignored;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(file, ignored); ++links)
    file = file.parent_path() / std::filesystem::read_symlink(file, ignored);
  return file;
}

void check_name_length(const std::string& option, const std::string& file) {
  struct stat status {};
  if (::lstat((file + ".partial").c_str(), &status) != 0 && errno == ENAMETOOLONG)
    throw_usage(option + ": cannot write '" + file + "': " + std::strerror(ENAMETOOLONG));
}

std::optional<std::int64_t> read_integer(const std::string& path) {
  const auto text = read_text(path);
  if (!text || text->empty()) return std::nullopt;
  std::string_view digits = *text;
  const auto first = digits.find_first_not_of(" \t");
  digits.remove_prefix(first == std::string_view::npos ? digits.size() : first);
  if (digits.starts_with("0x")) return to_integer<std::int64_t>(digits.substr(2), 16);
  return to_integer<std::int64_t>(digits);
}

LaunchEnvironment launch_environment() {
  LaunchEnvironment env;
  env.launcher = "none";
  env.oversubscribe_asked = oversubscribe_asked();
  const auto take = [&env](const char* launcher, const char* rank_variable) {
    const int rank = environment_integer(rank_variable);
    if (rank < 0) return false;
    env.launched = true;
    env.rank = rank;
    env.launcher = launcher;
    return true;
  };
  // mpirun inside a Slurm job starts its daemons with srun, whose SLURM_PROCID the ranks inherit: the
  // launcher nearest to the process is asked first.
  if (take("openmpi", "OMPI_COMM_WORLD_RANK")) {
    env.size = environment_integer("OMPI_COMM_WORLD_SIZE");
    env.local_rank = environment_integer("OMPI_COMM_WORLD_LOCAL_RANK");
    env.local_size = environment_integer("OMPI_COMM_WORLD_LOCAL_SIZE");
  } else if (take("pmi", "PMI_RANK")) {
    env.size = environment_integer("PMI_SIZE");
    env.local_rank = environment_integer("MPI_LOCALRANKID");
    env.local_size = environment_integer("MPI_LOCALNRANKS");
  } else if (take("pmi", "PMIX_RANK")) {
    if (in_slurm_step()) {
      add_slurm(env);
      env.launcher = "slurm";
    }
  } else if (in_slurm_step() && take("slurm", "SLURM_PROCID")) {
    add_slurm(env);
  }
  if (env.launched && env.local_size < 0) env.local_size = local_size_of_step(env.size);
  if (env.local_size > env.size) env.local_size = -1;
  return env;
}

bool speaks_for_all() {
  const LaunchEnvironment env = launch_environment();
  return !env.launched || env.rank == 0;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int count = 1024; count <= kMaxCpu; count *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(count));
    if (set == nullptr) return cpus;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    CPU_ZERO_S(bytes, set);
    const bool fits = sched_getaffinity(0, bytes, set) == 0;
    const bool grow = !fits && errno == EINVAL;  // the kernel has more CPUs than the set holds
    for (int cpu = 0; fits && cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) cpus.push_back(cpu);
    }
    CPU_FREE(set);
    if (!grow) break;
  }
  return cpus;
}

std::string format_cpu_list(const std::vector<int>& cpus) {
  std::vector<int> sorted = cpus;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(sorted[i]);
    if (last > i) text += '-' + std::to_string(sorted[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  const auto fail = [&text]() { throw_usage("'" + text + "' is no list of CPUs such as 0-3,8"); };
  const auto number = [&fail](std::string_view digits) {
    const auto value = to_integer<int>(digits);
    if (!value || *value < 0 || *value >= kMaxCpu) fail();
    return *value;
  };
  std::vector<int> cpus;
  std::string_view rest = text;
  if (rest.empty()) return cpus;
  for (bool more = true; more;) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const auto dash = item.find('-');
    const int first = number(item.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (last < first) fail();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

void release_free_memory() noexcept {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

std::string controller_of(const std::string& file) { return file.substr(0, file.find('.')); }

}  // namespace assay
