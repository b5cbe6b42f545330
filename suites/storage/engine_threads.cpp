// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "suites/storage/engine.hpp"

namespace assay::storage {
namespace {

/// Threads that wait for work and share it request by request.
class ThreadEngine final : public Engine {
 public:
  ThreadEngine(int depth, ThreadWork what) : Engine(depth), what_(std::move(what)) {
    if (!what_.move) what_.move = [](bool write, const Request& r) { return move_rest(write, r, 0); };
    for (int i = 1; i < depth; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~ThreadEngine() override {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::string name() const override { return "threads"; }

  void run(bool write, std::span<Request> requests) override {
    {
      const std::lock_guard lock(mutex_);
      write_ = write;
      work_ = requests;
      next_ = 0;
      busy_ = threads_.size();
      ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    if (trouble_) std::rethrow_exception(trouble_);
  }

 private:
  void take() {
    for (std::size_t i = next_++; i < work_.size(); i = next_++) move(work_[i]);
  }

  void move(Request& r) const {
    const double begin = now_s();
    r.result = what_.move(write_, r);
    r.latency_s = now_s() - begin;
  }

  void serve() {
    std::exception_ptr trouble;
    try {
      if (what_.begin) what_.begin();
    } catch (...) {
      trouble = std::current_exception();
    }
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return end_ || round_ != seen; });
      if (end_) return;
      seen = round_;
      lock.unlock();
      if (!trouble) take();
      lock.lock();
      if (trouble) trouble_ = trouble;
      if (--busy_ == 0) done_.notify_one();
    }
  }

  ThreadWork what_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::span<Request> work_;
  std::atomic<std::size_t> next_{0};
  std::size_t busy_ = 0;
  std::exception_ptr trouble_;  ///< a thread that cannot work
  std::uint64_t round_ = 0;
  bool write_ = false, end_ = false;
};

}  // namespace

std::int64_t move_rest(bool write, const Request& r, std::int64_t moved) {
  constexpr std::int64_t page = 4096;
  bool gone_back = false;
  moved = std::max<std::int64_t>(moved, 0);
  while (moved < r.bytes) {
    const auto at = static_cast<off_t>(r.offset) + moved;
    const auto left = static_cast<std::size_t>(r.bytes - moved);
    const ssize_t more =
        write ? ::pwrite(r.fd, r.data + moved, left, at) : ::pread(r.fd, r.data + moved, left, at);
    if (more == 0) break;
    if (more > 0) {
      moved += more;
    } else if (errno == EINVAL && moved % page != 0) {
      if (gone_back) break;
      moved -= moved % page;  // O_DIRECT takes no part of a page: that page once more
      gone_back = true;
    } else if (errno != EINTR) {
      return -errno;
    }
  }
  return moved;
}

std::unique_ptr<Engine> make_thread_engine(int depth, ThreadWork work) {
  return std::make_unique<ThreadEngine>(depth, std::move(work));
}

std::unique_ptr<Engine> make_engine(const std::string& wanted, int depth, std::string& why) {
  if (wanted != "threads") {
    if (auto engine = make_uring_engine(depth, why)) return engine;
    if (wanted == "io_uring") throw Error(ErrorKind::resource, "--storage.engine io_uring: " + why);
  }
  return make_thread_engine(depth);
}

}  // namespace assay::storage
