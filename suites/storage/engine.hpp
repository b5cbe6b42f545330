// SPDX-License-Identifier: Apache-2.0
// Reads and writes at a queue depth: io_uring, or threads with pread and pwrite where the kernel or a
// container forbids it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::storage {

struct Request {
  int fd = -1;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::uint32_t bytes = 0;
  std::int64_t result = 0;  ///< bytes moved, or -errno
  double latency_s = 0;     ///< from submission to completion
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;  ///< io_uring|threads
  /// Moves all of them, at most depth() at a time, in their order as far as the device keeps it. Results are
  /// in the requests. What ends early goes on: less than asked is read only at the end of a file.
  virtual void run(bool write, std::span<Request> requests) = 0;
  /// Memory that requests will use again and again; a hint.
  virtual void use_memory(std::span<std::byte> /*memory*/) {}
  /// Where requests move between a file and another memory than `Request::data`: its part of these requests
  /// becomes what is there now, or the reverse. Outside of the clock.
  virtual void fill_memory(std::span<const Request> /*requests*/) {}
  virtual void fetch_memory(std::span<const Request> /*requests*/) {}
  int depth() const noexcept { return depth_; }

 protected:
  explicit Engine(int depth) : depth_(depth) {}

 private:
  int depth_;
};

/// `wanted`: auto, io_uring or threads. Throws Error(resource) where io_uring is wanted by name and not to be
/// had; `why` says why auto took threads.
std::unique_ptr<Engine> make_engine(const std::string& wanted, int depth, std::string& why);

/// Keeps what is moved to `bytes_per_s` on average, by pauses.
class Pace {
 public:
  explicit Pace(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}
  /// Before a transfer: what was not used before is lost.
  void begin();
  /// After it: sleeps until so much may have been moved.
  void moved(double bytes);

 private:
  double bytes_per_s_, due_s_ = 0;
};

/// The same at `bytes_per_s` on average: as many requests as may be in flight at a time, and a pause after
/// them.
std::unique_ptr<Engine> make_limited_engine(std::unique_ptr<Engine> inner, double bytes_per_s);

std::unique_ptr<Engine> make_uring_engine(int depth, std::string& why);  ///< null where it is not to be had

/// Goes on with a request of which `moved` bytes are done, or -EINTR, by pread and pwrite. Bytes in all, less
/// at the end of a file; or -errno.
std::int64_t move_rest(bool write, const Request& request, std::int64_t moved);

/// What each thread does: by default pread and pwrite.
struct ThreadWork {
  std::function<std::int64_t(bool write, const Request& request)> move;  ///< bytes moved, or -errno
  std::function<void()> begin;  ///< called at the start of each thread but the caller's
};
std::unique_ptr<Engine> make_thread_engine(int depth, ThreadWork work = {});

}  // namespace assay::storage
