// SPDX-License-Identifier: Apache-2.0
#include "telemetry/nvml_thread.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/clock.hpp"

namespace assay {
namespace {

constexpr const char* silent =
    "NVML does not answer: the NVIDIA driver hangs, or is starting its GPUs (persistence mode is off)";

}  // namespace

// Shared by the callers and the thread, since either may outlive the other.
struct NvmlThread::State {
  struct Request {
    std::function<void(Nvml&)> work;
    std::uint64_t number = 0;
    double hangs_at_s = 0;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Request> requests;
  std::uint64_t asked = 0, done = 0;
  double hangs_at_s = 0;  ///< of the request under way, 0 if there is none
  double hang_s = 0;
  bool opened = false, stop = false, stuck = false, ended = false, usable = false;
  std::string trouble;
  std::thread thread;

  /// The body of the thread; it alone holds the library.
  static void serve(const std::shared_ptr<State>& state) {
    Nvml::Opened opened = Nvml::open();
    std::unique_lock lock(state->mutex);
    state->trouble = opened.trouble;
    state->usable = opened.nvml != nullptr;
    state->opened = true;
    state->changed.notify_all();
    while (opened.nvml != nullptr) {
      state->changed.wait(lock, [&] { return state->stop || !state->requests.empty(); });
      if (state->stop) break;
      Request request = std::move(state->requests.front());
      state->requests.pop_front();
      state->hangs_at_s = request.hangs_at_s;
      lock.unlock();
      try {
        request.work(*opened.nvml);
      } catch (const std::exception&) {
        // What could not be asked stays as the caller made it: not told.
      }
      request.work = nullptr;
      lock.lock();
      state->done = request.number;
      state->hangs_at_s = 0;
      state->changed.notify_all();
    }
    lock.unlock();
    opened.nvml.reset();
    lock.lock();
    state->ended = true;
    state->changed.notify_all();
  }

  template <typename Condition>
  bool wait(std::unique_lock<std::mutex>& lock, double seconds, Condition condition) {
    return changed.wait_for(lock, std::chrono::duration<double>(seconds), condition);
  }
};

std::shared_ptr<NvmlThread> NvmlThread::open(std::string& trouble, double hang_s, double patience_s) {
  auto state = std::make_shared<State>();
  state->hang_s = hang_s;
  state->thread = std::thread([state] { State::serve(state); });
  std::shared_ptr<NvmlThread> out(new NvmlThread(state));
  std::unique_lock lock(state->mutex);
  if (!state->wait(lock, patience_s, [&] { return state->opened; })) {
    state->stuck = true;
    trouble = silent;
    return nullptr;
  }
  trouble = state->trouble;
  return state->usable ? out : nullptr;
}

NvmlThread::~NvmlThread() {
  constexpr double patience_s = 2;
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
  const bool ended = !state_->stuck && state_->wait(lock, patience_s, [&] { return state_->ended; });
  lock.unlock();
  if (ended)
    state_->thread.join();
  else
    state_->thread.detach();
}

bool NvmlThread::call(std::function<void(Nvml&)> work, double patience_s) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.stuck) return false;
  const std::uint64_t number = ++state.asked;
  const double asked_s = now_s();
  state.requests.push_back({std::move(work), number, asked_s + std::max(state.hang_s, patience_s)});
  state.changed.notify_all();
  const auto hangs_at_s = [&] {
    return state.hangs_at_s > 0 ? state.hangs_at_s : state.requests.front().hangs_at_s;
  };
  const auto ended = [&] { return state.done >= number || state.stuck; };
  while (!ended()) {
    const double end_s = std::min(asked_s + patience_s, hangs_at_s());
    if (now_s() >= end_s) break;
    state.wait(lock, end_s - now_s(), ended);
  }
  if (state.done >= number) return true;
  std::erase_if(state.requests, [&](const State::Request& r) { return r.number == number; });
  if (state.stuck || state.hangs_at_s == 0 || now_s() < state.hangs_at_s) return false;
  state.stuck = true;
  state.requests.clear();
  state.changed.notify_all();
  return false;
}

bool NvmlThread::stuck() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->stuck;
}

std::shared_ptr<NvmlThread> probe_gpus(Node& node, double hang_s, double patience_s) {
  const double until_s = now_s() + patience_s;
  std::string trouble;
  auto thread = NvmlThread::open(trouble, hang_s, patience_s);
  node.gpu_trouble = trouble;
  if (thread == nullptr) return nullptr;
  const auto told = std::make_shared<Node>();
  const double left_s = std::max(hang_s, until_s - now_s());
  if (!thread->call([told](Nvml& nvml) { describe_gpus(nvml, *told); }, left_s)) {
    node.gpu_trouble = silent;
    return nullptr;
  }
  node.gpus = told->gpus;
  node.gpu_uuids = told->gpu_uuids;
  node.gpu_serials = told->gpu_serials;
  node.gpus_lost = told->gpus_lost;
  node.gpus_hidden = told->gpus_hidden;
  node.software.edit().insert(told->software.begin(), told->software.end());
  return thread;
}

}  // namespace assay
