// SPDX-License-Identifier: Apache-2.0
#include "base/confined.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

#include "base/bounds.hpp"
#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/reading_filter.hpp"

namespace assay {
namespace {

constexpr std::uint32_t most_in_frame = 1U << 18;
constexpr std::uint32_t error_frame = ~0U;
constexpr std::uint32_t most_in_message = 4096;

/// The child went away before it had said all.
struct Lost {};

/// Descriptors of this process are no business of the child: among them are lines to other ranks.
void close_from(unsigned first) noexcept {
  if (::close_range(first, ~0U, 0) == 0) return;
  const long most = std::min(::sysconf(_SC_OPEN_MAX), 65536L);
  for (long fd = first; fd < most; ++fd) ::close(static_cast<int>(fd));
}

int run_reader(const std::vector<std::string>& files, const ReadInputs& read, std::uint64_t bytes, int out) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGXCPU, SIGTERM})
    std::signal(signal, SIG_DFL);
  const int nowhere = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, fd);
  if (::dup2(out, 3) != 3) return 1;
  close_from(4);
  bound_process(bytes);
  raise_open_files();
  Sink sink(3);
  try {
    const Inputs inputs(files.begin(), files.end());
    install_reading_filter();
    read(inputs, sink);
    sink.end();
  } catch (const Error& e) {
    sink.fail(static_cast<int>(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    sink.fail(static_cast<int>(ErrorKind::data), "the file needs more memory than there is");
  } catch (const std::exception& e) {
    sink.fail(static_cast<int>(ErrorKind::internal), e.what());
  }
  return 0;
}

}  // namespace

Sink::Sink(int fd) : fd_(fd) {}

void Sink::send(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);  // the reader is gone
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

void Sink::flush() {
  if (waiting_.empty()) return;
  const auto size = static_cast<std::uint32_t>(waiting_.size());
  send(&size, sizeof size);
  send(waiting_.data(), waiting_.size());
  waiting_.clear();
}

void Sink::write(const void* data, std::size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const std::size_t n = std::min<std::size_t>(bytes, most_in_frame - waiting_.size());
    waiting_.append(at, n);
    at += n;
    bytes -= n;
    if (waiting_.size() == most_in_frame) flush();
  }
}

void Sink::end() {
  flush();
  constexpr std::uint32_t nothing = 0;
  send(&nothing, sizeof nothing);
}

void Sink::fail(int kind, const std::string& message) {
  const std::uint32_t head[3] = {
      error_frame, static_cast<std::uint32_t>(kind),
      static_cast<std::uint32_t>(std::min<std::size_t>(message.size(), most_in_message))};
  send(head, sizeof head);
  send(message.data(), head[2]);
}

Source::Source(int fd, std::uint64_t most_bytes, double patience_s)
    : fd_(fd), left_(most_bytes), until_s_(now_s() + patience_s) {}

void Source::receive(void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    pollfd p{fd_, POLLIN, 0};
    const double left_s = until_s_ - now_s();
    if (left_s <= 0) throw Lost();
    const int ready = ::poll(&p, 1, static_cast<int>(std::min(left_s, 10.0) * 1e3) + 1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw Lost();
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

bool Source::next_frame() {
  if (ended_) return false;
  std::uint32_t size = 0;
  receive(&size, sizeof size);
  if (size == error_frame) {
    std::uint32_t head[2];
    receive(head, sizeof head);
    std::string text(std::min(head[1], most_in_message), '\0');
    receive(text.data(), text.size());
    for (char& c : text)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    throw Error(head[0] <= static_cast<std::uint32_t>(ErrorKind::internal) ? static_cast<ErrorKind>(head[0])
                                                                           : ErrorKind::data,
                text);
  }
  ended_ = size == 0;
  if (ended_) return false;
  if (size > most_in_frame || size > left_) throw Error(ErrorKind::data, "it holds more than its size can");
  left_ -= size;
  frame_.resize(size);
  at_ = 0;
  receive(frame_.data(), size);
  return true;
}

void Source::read(void* to, std::size_t bytes) {
  char* out = static_cast<char*>(to);
  while (bytes > 0) {
    if (at_ == frame_.size() && !next_frame()) throw Error(ErrorKind::data, "its data are incomplete");
    const std::size_t n = std::min(bytes, frame_.size() - at_);
    std::memcpy(out, frame_.data() + at_, n);
    at_ += n;
    out += n;
    bytes -= n;
  }
}

void Source::finish() {
  if (at_ != frame_.size() || next_frame()) throw Error(ErrorKind::data, "more was read of it than it holds");
}

void read_confined(const std::vector<std::string>& files, const ReadInputs& read,
                   const std::function<void(Source&)>& take) {
  const std::uint64_t bytes = input_bytes(files);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::resource, std::string("no pipe to a reading process: ") + std::strerror(errno));
  std::optional<ChildProcess> child;
  try {
    child.emplace("a reading process", [&] { return run_reader(files, read, bytes, ends[1]); });
  } catch (...) {
    for (const int end : ends) ::close(end);
    throw;
  }
  ::close(ends[1]);
  ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
  const auto over = [&](int grace_ms) {
    ::close(ends[0]);
    return child->wait_or_kill(grace_ms);
  };
  try {
    // A slow file system reads a MB a second; processor time has its own, smaller bound.
    Source source(ends[0], (std::uint64_t{1} << 30) + 64 * bytes, 600.0 + 1e-6 * static_cast<double>(bytes));
    take(source);
    source.finish();
  } catch (const Lost&) {
    const int status = over(1000);
    throw Error(ErrorKind::data,
                describe_lost_reader(files, WIFSIGNALED(status) ? WTERMSIG(status) : SIGABRT));
  } catch (...) {
    over(0);
    throw;
  }
  over(0);
}

std::string describe_confinement() {
  bool filtered = false;
  try {
    read_confined(
        {},
        [](const Inputs&, Sink& sink) {
          const bool refused = ::open("/dev/null", O_RDONLY) < 0;
          sink.write(&refused, sizeof refused);
        },
        [&](Source& source) { source.read(&filtered, sizeof filtered); });
  } catch (const Error&) {
    filtered = false;
  }
  const std::string version = reading_filter_version();
  return filtered
             ? "a child process, bounded in memory and time, that can open no other file and no network (" +
                   version + ")"
             : "a child process, bounded in memory and time, without a filter of system calls (" + version +
                   ")";
}

}  // namespace assay
