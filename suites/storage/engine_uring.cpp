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

  void run(bool write, std::span<Request> requests) override {
    std::size_t next = 0, done = 0;
    while (done < requests.size()) {
      while (next < requests.size() && next - done < static_cast<std::size_t>(depth())) {
        io_uring_sqe* entry = io_uring_get_sqe(&ring_);
        if (entry == nullptr) break;
        prepare(entry, write, requests[next++]);
      }
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted < 0 && submitted != -EINTR && submitted != -EAGAIN)
        throw Error(ErrorKind::resource, std::string("io_uring: ") + std::strerror(-submitted));
      io_uring_cqe* entry = nullptr;
      while (io_uring_peek_cqe(&ring_, &entry) == 0) {
        auto* request = static_cast<Request*>(io_uring_cqe_get_data(entry));
        request->result = entry->res;
        request->latency_s = now_s() - request->latency_s;
        io_uring_cqe_seen(&ring_, entry);
        ++done;
      }
    }
  }

 private:
  bool registered(const Request& r) const {
    return !memory_.empty() && r.data >= memory_.data() &&
           r.data + r.bytes <= memory_.data() + memory_.size();
  }

  void prepare(io_uring_sqe* entry, bool write, Request& r) {
    if (write && registered(r))
      io_uring_prep_write_fixed(entry, r.fd, r.data, r.bytes, r.offset, 0);
    else if (write)
      io_uring_prep_write(entry, r.fd, r.data, r.bytes, r.offset);
    else if (registered(r))
      io_uring_prep_read_fixed(entry, r.fd, r.data, r.bytes, r.offset, 0);
    else
      io_uring_prep_read(entry, r.fd, r.data, r.bytes, r.offset);
    io_uring_sqe_set_data(entry, &r);
    r.latency_s = now_s();
  }

  io_uring ring_;
  std::span<std::byte> memory_;
};

}  // namespace

std::unique_ptr<Engine> make_uring_engine(int depth, std::string& why) {
  io_uring ring{};
  const int error = io_uring_queue_init(static_cast<unsigned>(depth), &ring, 0);
  if (error == 0) return std::make_unique<UringEngine>(depth, ring);
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
