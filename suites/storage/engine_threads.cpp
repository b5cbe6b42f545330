// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
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
  explicit ThreadEngine(int depth) : Engine(depth) {
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
  }

 private:
  void take() {
    for (std::size_t i = next_++; i < work_.size(); i = next_++) move(work_[i]);
  }

  void move(Request& r) const {
    const double begin = now_s();
    do {
      r.result = write_ ? ::pwrite(r.fd, r.data, r.bytes, static_cast<off_t>(r.offset))
                        : ::pread(r.fd, r.data, r.bytes, static_cast<off_t>(r.offset));
    } while (r.result < 0 && errno == EINTR);
    if (r.result < 0) r.result = -errno;
    r.latency_s = now_s() - begin;
  }

  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return end_ || round_ != seen; });
      if (end_) return;
      seen = round_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::span<Request> work_;
  std::atomic<std::size_t> next_{0};
  std::size_t busy_ = 0;
  std::uint64_t round_ = 0;
  bool write_ = false, end_ = false;
};

}  // namespace

std::unique_ptr<Engine> make_thread_engine(int depth) { return std::make_unique<ThreadEngine>(depth); }

std::unique_ptr<Engine> make_engine(const std::string& wanted, int depth, std::string& why) {
  if (wanted != "threads") {
    if (auto engine = make_uring_engine(depth, why)) return engine;
    if (wanted == "io_uring") throw Error(ErrorKind::resource, "--storage.engine io_uring: " + why);
  }
  return make_thread_engine(depth);
}

}  // namespace assay::storage
