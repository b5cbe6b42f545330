// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/engine.hpp"

#ifdef ASSAY_HAS_URING
#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace assay::storage {
namespace {

class UringEngine final : public Engine {
 public:
  UringEngine(int depth, io_uring ring) : Engine(depth), ring_(ring) {}
  ~UringEngine() override { io_uring_queue_exit(&ring_); }
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  std::string name() const override { return "io_uring"; }

  /// Locked memory may be limited: then requests go without registered buffers.
  void use_memory(std::span<std::byte> memory) override {
    if (!memory_.empty()) io_uring_unregister_buffers(&ring_);
    const iovec whole{memory.data(), memory.size()};
    memory_ = io_uring_register_buffers(&ring_, &whole, 1) == 0 ? memory : std::span<std::byte>{};
  }

  /// Each request is submitted by itself: a device that works on one while the next is prepared is not kept
  /// waiting for a whole queue of them.
  void run(bool write, std::span<Request> requests) override {
    register_file(requests);
    std::size_t next = 0, done = 0;
    while (done < requests.size()) {
      if (room(next - done) && next < requests.size())
        if (io_uring_sqe* entry = io_uring_get_sqe(&ring_)) prepare(entry, write, requests[next++]);
      const bool go_on = room(next - done) && next < requests.size();
      expect_no_error(go_on ? io_uring_submit(&ring_) : io_uring_submit_and_wait(&ring_, 1));
      done += completed(write);
    }
    if (file_ >= 0) use_file(-1);
  }

 private:
  bool room(std::size_t in_flight) const { return in_flight < static_cast<std::size_t>(depth()); }

  bool registered(const Request& r) const {
    return !memory_.empty() && r.data >= memory_.data() &&
           r.data + r.bytes <= memory_.data() + memory_.size();
  }

  static void expect_no_error(int submitted) {
    if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY)
      throw Error(ErrorKind::resource, std::string("io_uring: ") + std::strerror(-submitted));
  }

  std::size_t completed(bool write) {
    std::size_t count = 0;
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0) {
      auto* request = static_cast<Request*>(io_uring_cqe_get_data(entry));
      request->result = entry->res;
      if (entry->res == -EINTR || (entry->res >= 0 && entry->res < static_cast<int>(request->bytes)))
        request->result = move_rest(write, *request, entry->res);
      request->latency_s = now_s() - request->latency_s;
      io_uring_cqe_seen(&ring_, entry);
      ++count;
    }
    return count;
  }

  /// For one call only: a registered file stays open, and its number may become that of another file.
  void register_file(std::span<const Request> requests) {
    const auto first =
        std::find_if(requests.begin(), requests.end(), [](const Request& r) { return r.fd >= 0; });
    if (first != requests.end()) use_file(first->fd);
  }
  void use_file(int fd) { file_ = io_uring_register_files_update(&ring_, 0, &fd, 1) == 1 ? fd : -1; }

  void prepare(io_uring_sqe* entry, bool write, Request& r) {
    if (write && registered(r))
      io_uring_prep_write_fixed(entry, r.fd, r.data, r.bytes, r.offset, 0);
    else if (write)
      io_uring_prep_write(entry, r.fd, r.data, r.bytes, r.offset);
    else if (registered(r))
      io_uring_prep_read_fixed(entry, r.fd, r.data, r.bytes, r.offset, 0);
    else
      io_uring_prep_read(entry, r.fd, r.data, r.bytes, r.offset);
    if (file_ >= 0 && r.fd == file_) {
      entry->fd = 0;
      entry->flags |= IOSQE_FIXED_FILE;
    }
    io_uring_sqe_set_data(entry, &r);
    r.latency_s = now_s();
  }

  io_uring ring_;
  std::span<std::byte> memory_;
  int file_ = -1;  ///< registered at index 0, where it is not -1
};

/// Completions are taken by the thread that waits, without an interrupt of it (Linux 5.19).
constexpr unsigned cooperative = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

}  // namespace

std::unique_ptr<Engine> make_uring_engine(int depth, std::string& why) {
  io_uring ring{};
  int error = io_uring_queue_init(static_cast<unsigned>(depth), &ring, cooperative);
  if (error == -EINVAL) error = io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
  if (error == 0) {
    io_uring_register_files_sparse(&ring, 1);  // where it is not to be had, updates fail, too
    return std::make_unique<UringEngine>(depth, ring);
  }
  why = std::string("io_uring: ") + std::strerror(-error);
  return nullptr;
}

}  // namespace assay::storage
#else
namespace assay::storage {

std::unique_ptr<Engine> make_uring_engine(int, std::string& why) {
  why = "io_uring: not in this build";
  return nullptr;
}

}  // namespace assay::storage
#endif
