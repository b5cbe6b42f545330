// SPDX-License-Identifier: Apache-2.0
#include "device/team.hpp"

#include <pthread.h>

#include <set>
#include <string>
#include <system_error>

#include "base/affinity.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

constexpr double spin_s = 20e-6;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void bind(pthread_t thread, int cpu) {
  if (!bind_thread(thread, {cpu}))
    throw Error(ErrorKind::resource, "cannot bind a thread to CPU " + std::to_string(cpu));
}

}  // namespace

Team::Team(const std::vector<int>& cpus, bool pin) {
  if (cpus.empty()) throw Error(ErrorKind::internal, "a thread team needs at least one CPU");
  const std::set<int> distinct(cpus.begin(), cpus.end());
  const std::vector<int> allowed = allowed_cpus();  // empty where they are not known
  spin_ = distinct.size() == cpus.size() && (allowed.empty() || allowed.size() >= cpus.size());
  try {
    for (std::size_t i = 1; i < cpus.size(); ++i) {
      workers_.emplace_back([this, i] { work(static_cast<int>(i)); });
      if (pin) bind(workers_.back().native_handle(), cpus[i]);
    }
    if (pin) {
      old_cpus_ = allowed;
      bind(pthread_self(), cpus[0]);
    }
  } catch (const std::system_error& e) {
    stop();
    throw Error(ErrorKind::resource, std::string("cannot start a thread: ") + e.what());
  } catch (const Error&) {
    stop();
    throw;
  }
}

Team::~Team() {
  stop();
  if (!old_cpus_.empty()) bind_thread(pthread_self(), old_cpus_);
}

void Team::stop() noexcept {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& w : workers_) w.join();
  workers_.clear();
}

void Team::wait_while(std::atomic<int>& value, int old) const noexcept {
  if (spin_) {
    const double end = now_s() + spin_s;
    do {
      for (int i = 0; i < 32; ++i) {
        if (value.load(std::memory_order_acquire) != old) return;
        pause_cpu();
      }
    } while (now_s() < end);
  }
  value.wait(old, std::memory_order_acquire);
}

void Team::call(const void* task, Entry entry) noexcept {
  if (!workers_.empty()) {
    task_ = task;
    entry_ = entry;
    pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  }
  entry(task, 0);
  for (int left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    wait_while(pending_, left);
}

void Team::work(int thread) noexcept {
  for (int seen = 0;;) {
    wait_while(generation_, seen);
    // Generations cannot be missed: the next one starts only after this worker has reported the last.
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    entry_(task_, thread);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace assay
