// SPDX-License-Identifier: Apache-2.0
#include "supervisor/trace.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/system.hpp"

namespace assay::supervisor {
namespace {

Heartbeat* answering = nullptr;  // a signal handler can be given nothing

int trace_signal() noexcept { return SIGRTMIN + 4; }

void answer(int) {
  const int error = errno;
  void* frames[Heartbeat::max_frames];
  const int n = backtrace(frames, static_cast<int>(Heartbeat::max_frames));
  for (int i = 0; i < n; ++i)
    answering->frames[static_cast<std::size_t>(i)].store(reinterpret_cast<std::uintptr_t>(frames[i]));
  answering->frame_count.store(n);
  errno = error;
}

struct Mapping {
  std::uintptr_t begin = 0, end = 0, offset = 0;
  std::string file;
};

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> out;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line) && out.size() < 10000;) {
    std::istringstream words(line);
    std::string range, rights, device, inode;
    Mapping m;
    words >> range >> rights >> std::hex >> m.offset >> device >> inode >> m.file;
    if (std::sscanf(range.c_str(), "%zx-%zx", &m.begin, &m.end) == 2) out.push_back(m);
  }
  return out;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Worker and supervisor were one process until the fork, so what was loaded then lies at the same addresses
/// in both.
std::string name_of(std::uintptr_t address, const std::vector<Mapping>& maps) {
  Dl_info info{};
  const auto at = std::find_if(maps.begin(), maps.end(),
                               [&](const Mapping& m) { return address >= m.begin && address < m.end; });
  const std::string file = at == maps.end() ? "?" : base_name(at->file);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a return address
  if (dladdr(reinterpret_cast<void*>(address - 1), &info) != 0 && info.dli_sname != nullptr &&
      base_name(info.dli_fname) == file) {
    int status = 0;
    char* plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = status == 0 ? plain : info.dli_sname;
    std::free(plain);  // NOLINT: what the C++ runtime allocated so
    if (name.size() > 120) name = name.substr(0, 117) + "...";
    return fmt::format("{} ({})", name, file);
  }
  return at == maps.end() ? fmt::format("{:#x}", address)
                          : fmt::format("{}+{:#x}", file, address - at->begin + at->offset);
}

}  // namespace

void answer_trace_requests(Heartbeat& heartbeat) {
  answering = &heartbeat;
  void* warm[2];
  backtrace(warm, 2);  // the first call loads a library, which a handler must not do
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  sigaction(trace_signal(), &action, nullptr);
}

void request_trace(Heartbeat& heartbeat, pid_t worker) noexcept {
  heartbeat.frame_count.store(-1);
  // To the main thread, which runs the suites; the process has others, of MPI and BLAS.
  syscall(SYS_tgkill, worker, worker, trace_signal());
  if (process_state(worker) == 'T') kill(worker, SIGCONT);
}

bool trace_answered(const Heartbeat& heartbeat) noexcept { return heartbeat.frame_count.load() >= 0; }

std::string describe_trace(const Heartbeat& heartbeat, pid_t worker) {
  const int n = heartbeat.frame_count.load();
  if (n < 0) {
    const auto wchan = read_text(fmt::format("/proc/{}/wchan", worker));
    const char state = process_state(worker);
    return fmt::format("no answer to the trace signal; process state {}{}", state,
                       wchan && !wchan->empty() && *wchan != "0" ? ", in the kernel's " + *wchan : "");
  }
  const auto maps = mappings_of(worker);
  std::string out;
  // The two innermost frames are the handler and the kernel's way into it.
  for (int i = 2; i < std::min<int>(n, Heartbeat::max_frames); ++i)
    out += name_of(heartbeat.frames[static_cast<std::size_t>(i)].load(), maps) + "\n";
  return out;
}

char process_state(pid_t pid) noexcept {
  char path[40], line[512] = "";
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return '?';
  const std::size_t n = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[n] = '\0';
  // The name in brackets may contain brackets; the state follows the last one.
  const std::string text(line);
  const auto bracket = text.rfind(')');
  return bracket == std::string::npos || bracket + 2 >= text.size() ? '?' : text[bracket + 2];
}

double core_wait_s(pid_t pid) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  double ran_ns = 0, waited_ns = 0;
  const int numbers = std::fscanf(file, "%lf %lf", &ran_ns, &waited_ns);
  std::fclose(file);
  return numbers == 2 ? 1e-9 * waited_ns : 0;
}

}  // namespace assay::supervisor
