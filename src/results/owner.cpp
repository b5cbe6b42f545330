// SPDX-License-Identifier: Apache-2.0
// Who writes a partial directory, and how it changes hands.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/process_stat.hpp"
#include "base/system.hpp"
#include "results/archive.hpp"
#include "results/disk.hpp"
#include "results/json_io.hpp"

namespace assay::results {

template <class V>
void members(Of<Owner>, V&& v) {
  v(&Owner::run_id), v(&Owner::host), v(&Owner::pid), v(&Owner::start);
}

namespace {

/// Seconds a partial directory of another host must have been left alone before it counts as left behind.
constexpr double quiet_s = 60;

double modified_s(const Path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return 0;
  return static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
}

/// A file that is removed again.
struct Scratch {
  explicit Scratch(Path p) : path(std::move(p)) {}
  ~Scratch() { ::unlink(path.c_str()); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Path path;
};

Path name_of_mine(const Path& partial, const char* what) {
  return partial / ("owner." + host_name() + "." + std::to_string(::getpid()) + what);
}

/// Now, by the clock of the file system that holds the directory; by ours where nothing can be written.
double file_system_now_s(const Path& partial) {
  const Scratch made(name_of_mine(partial, ".now"));
  const int fd = ::open(made.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return static_cast<double>(std::time(nullptr));
  ::close(fd);
  return modified_s(made.path);
}

/// When anything changed in the directory.
double touched_s(const Path& partial) {
  double last = modified_s(cases_directory(partial));
  for (const char* name : {"owner", "plan.json", "events.jsonl", "end.json", "merged.h5"})
    last = std::max(last, modified_s(partial / name));
  return last;
}

std::string described(const Owner& owner) {
  return "process " + std::to_string(owner.pid) + " on " + owner.host + " (run " + owner.run_id + ")";
}

[[noreturn]] void fail_taken(const Path& partial) {
  const auto owner = read_owner(partial);
  throw_usage(partial.string() + " is being resumed by " + (owner ? described(*owner) : "another process") +
              ": only one run can write it");
}

/// Gives a complete file its name only if no file has it. Returns false when one has.
bool link_new(const Path& from, const Path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) fail_io("create", to);
  // no hard links here: made exclusively, then filled
  const int fd = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) return false;
  if (fd < 0) fail_io("create", to);
  ::close(fd);
  append(to, read_file(from));
  return true;
}

/// Who a file says that he is: not trusted, and read in a process of its own.
std::optional<Owner> owner_in(const Path& file) {
  constexpr std::uint64_t most_bytes = 4096;
  std::optional<Owner> found;
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return found;
  try {
    found = made_confined<std::optional<Owner>>({file.string()}, [](const Inputs& inputs) {
      return inputs.front().bytes() > most_bytes ? std::nullopt : parse_owner(inputs.front().text());
    });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::resource) throw;
  }
  return found;
}

/// The old owner file moves away, so that of several that try only one finds it.
void remove_owner(const Path& partial, const Owner& owner, const Path& away) {
  if (::rename((partial / "owner").c_str(), away.c_str()) != 0) {
    if (errno == ENOENT) fail_taken(partial);
    fail_io("rename", partial / "owner");
  }
  if (owner_in(away) == owner) return;
  // another process took it between look and move: it goes back
  if (!link_new(away, partial / "owner")) ::unlink(away.c_str());
  fail_taken(partial);
}

/// The directory of the cases gets a new name: a former writer that lives after all finds no place to write
/// to.
void fence_cases(const Path& partial) {
  const Path from = cases_directory(partial);
  const std::string name = from.filename().string();
  const long generation = name == "cases" ? 1 : std::strtol(name.c_str() + 6, nullptr, 10);
  const Path to = partial / ("cases-" + std::to_string(std::clamp(generation, 1L, 1'000'000L) + 1));
  if (::rename(from.c_str(), to.c_str()) != 0) fail_io("rename", from);
  sync_directory(partial);
}

/// `next` takes the place of `former`, or of a text that cannot be read; of several that try one succeeds.
void hand_over(const Path& partial, const std::optional<Owner>& former, const Owner& next) {
  const Scratch mine(name_of_mine(partial, ".new")), old(name_of_mine(partial, ".old"));
  write_durable(mine.path, to_text(next));
  std::error_code code;
  if (former) {
    remove_owner(partial, *former, old.path);
  } else if (std::filesystem::exists(partial / "owner", code)) {
    // the process that moves it away first goes on
    if (::rename((partial / "owner").c_str(), old.path.c_str()) != 0) fail_taken(partial);
  }
  if (!link_new(mine.path, partial / "owner")) fail_taken(partial);
  fence_cases(partial);
}

}  // namespace

Owner this_process(const std::string& run_id) {
  const auto self = process_stat("self");
  return {run_id, host_name(), ::getpid(), self ? self->start : 0};
}

std::string to_text(const Owner& owner) {
  Json json;
  json["run_id"] = owner.run_id;
  json["host"] = owner.host;
  json["pid"] = owner.pid;
  json["start"] = owner.start;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<Owner> read_owner(const Path& partial) { return owner_in(partial / "owner"); }

bool is_owner(const Path& partial, const Owner& owner) {
  try {
    return InputFile(partial / "owner").text() == to_text(owner);
  } catch (const Error&) {
    return false;
  }
}

std::optional<Owner> parse_owner(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const Json &pid = json.at("pid"), &start = json.at("start");
    if (!pid.is_number_unsigned() || !start.is_number_unsigned()) return std::nullopt;
    return Owner{json.at("run_id"), json.at("host"), static_cast<std::int64_t>(pid.get<std::uint64_t>()),
                 start.get<std::uint64_t>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

bool is_running(const Owner& owner) {
  if (owner.host != host_name() || owner.pid <= 0) return false;
  const auto process = process_stat(std::to_string(owner.pid));
  return process && !process->ended() && process->start != 0 && process->start == owner.start;
}

bool seems_to_run(const Path& partial, const Owner& owner) {
  if (owner.host == host_name() || owner.pid == 0) return is_running(owner);
  return static_cast<double>(std::time(nullptr)) - touched_s(partial) < quiet_s;
}

void check_abandoned(const Path& partial, const Owner& owner) {
  if (is_running(owner)) {
    throw_usage(partial.string() + " is being written by " + described(owner) +
                ": only one run can write it");
  }
  if (owner.host == host_name() || owner.pid == 0) return;  // here it would be seen; nobody's since `release`
  const double idle_s = file_system_now_s(partial) - touched_s(partial);
  if (idle_s >= quiet_s) return;
  throw_usage(
      partial.string() + " was written " + std::to_string(std::max(0, static_cast<int>(idle_s))) +
      " s ago by " + described(owner) + ", which cannot be seen from here: if that run is over, try " +
      "again when the directory has been left alone for " + std::to_string(static_cast<int>(quiet_s)) + " s");
}

TakeOverLock::TakeOverLock(const Path& partial) {
  std::error_code code;
  if (!std::filesystem::exists(partial / "plan.json", code)) return;  // not ours to write to
  fd_ = ::open((partial / "owner.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) return;  // the next write reports the reason
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
    if (std::chrono::steady_clock::now() > patience) {
      ::close(fd_);
      fail_taken(partial);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TakeOverLock::~TakeOverLock() {
  if (fd_ >= 0) ::close(fd_);
}

Owner take_over(const Path& partial, const std::string& run_id) {
  const Owner me = this_process(run_id);
  const auto owner = read_owner(partial);
  if (owner) check_abandoned(partial, *owner);
  hand_over(partial, owner, me);
  return me;
}

void release(const Path& partial, const EventRow* event) {
  const TakeOverLock lock(partial);
  const auto owner = read_owner(partial);
  if (!owner || owner->pid == 0) return;
  if (is_running(*owner) && !(*owner == this_process(owner->run_id))) return;
  hand_over(partial, owner, {owner->run_id, owner->host, 0, 0});
  if (event == nullptr) return;
  cut_torn_line(partial / "events.jsonl");
  append(partial / "events.jsonl", dump_sealed(event_to_json(*event)) + "\n");
}

}  // namespace assay::results
