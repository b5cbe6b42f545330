// SPDX-License-Identifier: Apache-2.0
// Streams, events and memory of the emulation.
#include "cuda_runtime.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device_memory.hpp"
#include "gpus.hpp"
#include "runtime.hpp"

namespace emulation {

/// Work says whether it is over; the stream comes back to what is not, as a kernel goes on that waits for
/// another GPU.
struct Stream {
  std::deque<std::function<bool()>> work;
  std::unique_ptr<Graph> recording;  ///< takes what is queued, while the stream is captured
  bool draining = false;
  int priority = 0;
};
/// `stream` is where it was recorded last; how often it was recorded, and how many of these have run.
struct Event {
  Stream* stream = nullptr;
  bool blocking = false;  ///< who waits sleeps
  std::uint64_t recorded = 0, done = 0;
  std::chrono::steady_clock::time_point time;
};

namespace {

struct State {
  /// Held while anything runs or changes: threads share the machine, and take turns between pieces of work.
  std::recursive_mutex mutex;
  Stream default_stream;
  std::set<Stream*> streams;
  std::vector<std::unique_ptr<Event>> ended;
  std::map<void*, std::size_t> mapped;  ///< memory of the host that kernels may use
};
State& state() {
  static State s;
  return s;
}
using Lock = std::scoped_lock<std::recursive_mutex>;

/// As on hardware: a process cannot use a GPU whose parent called the runtime before it forked.
bool in_first_process() {
  static const pid_t first = getpid();
  return getpid() == first;
}

Stream& stream_of(void* stream) {
  return stream == nullptr ? state().default_stream : *static_cast<Stream*>(stream);
}

/// Marks a stream while its work runs: work that waits for its own stream would wait for ever.
class Draining {
 public:
  Draining(Stream& s, const char* problem) : s_(s) {
    if (s.draining) {
      std::fputs(problem, stderr);
      std::abort();
    }
    s.draining = true;
  }
  ~Draining() { s_.draining = false; }
  Draining(const Draining&) = delete;
  Draining& operator=(const Draining&) = delete;

 private:
  Stream& s_;
};

/// False when what is first waits for somebody else.
bool step(Stream& s) {
  const auto work = std::move(s.work.front());
  s.work.pop_front();
  if (work()) {
    ++pieces_done;
    return true;
  }
  s.work.push_front(work);
  sched_yield();
  return false;
}

/// Runs what can run; true when all of it has.
bool advance(Stream& s) {
  const Lock lock(state().mutex);
  const Draining mark(s, "emulation: a stream waits for itself\n");
  while (!s.work.empty())
    if (!step(s)) return false;
  return true;
}

void drain(Stream& s) {
  while (!advance(s)) sched_yield();  // without the lock, so that other threads get their turn
}

/// Runs the stream an event was recorded on as far as it goes or until its record `wanted` has happened,
/// which is what it returns.
bool reach(const Event& e, Stream* stream, std::uint64_t wanted) {
  const Lock lock(state().mutex);
  if (e.done >= wanted) return true;
  const Draining mark(*stream, "emulation: two streams wait for each other\n");
  while (e.done < wanted && !stream->work.empty())
    if (!step(*stream)) return false;
  return true;
}
bool reach(const Event& e) { return reach(e, e.stream, e.recorded); }

void drain_all() {
  const Lock lock(state().mutex);
  drain(state().default_stream);
  for (Stream* s : state().streams) drain(*s);
}

/// Of a GPU that takes one process. A lock on a file beside that of the GPUs, which ends with the process.
bool is_first_user(int device) {
  static std::map<int, int> files;
  const auto [at, fresh] = files.emplace(device, -1);
  if (fresh) {
    const std::string path =
        std::getenv("ASSAY_FAKE_GPUS") + std::string(".") + gpus()[static_cast<std::size_t>(device)].uuid;
    at->second = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
  return flock(at->second, LOCK_EX | LOCK_NB) == 0;
}

/// Waits of this process for what was started on a device that fails at the N-th of them.
bool waited_enough(int device) {
  static std::atomic<long> waits{0};
  const std::string& fault = gpus()[static_cast<std::size_t>(device)].fault;
  return fault.starts_with("wait") && !state().streams.empty() && ++waits >= std::atol(fault.c_str() + 4);
}

/// The error of what was started on the current device, as who waits for it learns.
cudaError_t outcome() {
  if (!is_device(current_device)) return cudaSuccess;
  const bool bad = has_fault(current_device, "ecc") ||
                   (has_fault(current_device, "late") && !state().streams.empty()) ||
                   waited_enough(current_device);
  return bad ? keep(cudaErrorECCUncorrectable) : cudaSuccess;
}

}  // namespace

void enqueue(void* stream, std::function<void()> work) {
  enqueue_until(stream, [work = std::move(work)] {
    work();
    return true;
  });
}
void enqueue_until(void* stream, std::function<bool()> work) {
  enqueue_made(stream, [work = std::move(work)] { return work; });
}
void enqueue_made(void* stream, std::function<std::function<bool()>()> make) {
  const Lock lock(state().mutex);
  Stream& s = stream_of(stream);
  if (s.recording)
    s.recording->nodes.push_back(std::move(make));
  else
    s.work.push_back(make());
}

std::unique_ptr<Graph>* recording_of(cudaStream_t stream) {
  return stream == nullptr ? nullptr : &stream->recording;
}

}  // namespace emulation

using namespace emulation;

cudaError_t cudaGetDeviceCount(int* count) {
  in_first_process();
  *count = static_cast<int>(gpus().size());
  return keep(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  if (!in_first_process()) return keep(cudaErrorInitializationError);
  if (!is_device(device)) return keep(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  ++counts().waits;
  drain_all();
  return outcome();
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock(state().mutex);
  if (!is_device(current_device)) return keep(cudaErrorNoDevice);
  if (has_fault(current_device, "busy") ||
      (has_fault(current_device, "exclusive") && !is_first_user(current_device)))
    return keep(cudaErrorDevicesUnavailable);
  *total = gpus()[static_cast<std::size_t>(current_device)].memory_bytes;
  *free = *total - std::min(*total, allocated_bytes(current_device));
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  const Lock lock(state().mutex);
  std::size_t free = 0, total = 0;
  if (const cudaError_t error = cudaMemGetInfo(&free, &total); error != cudaSuccess) return error;
  if (bytes > free) return keep(cudaErrorMemoryAllocation);
  constexpr std::size_t large = std::size_t{128} << 20;
  if (has_fault(current_device, "large") && bytes >= large && !state().streams.empty())
    return keep(cudaErrorECCUncorrectable);
  *p = allocate(bytes, current_device);
  return *p == nullptr ? keep(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  const Lock lock(state().mutex);
  drain_all();
  return p == nullptr || release(p) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  *p = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  drain_all();
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned flags) {
  const Lock lock(state().mutex);
  if ((flags & cudaHostRegisterMapped) != 0) state().mapped[p] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
  const Lock lock(state().mutex);
  drain_all();
  state().mapped.erase(p);
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* p, unsigned) {
  const Lock lock(state().mutex);
  *seen = p;
  return state().mapped.contains(p) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  enqueue(stream, [=] {
    std::memcpy(to, from, bytes);
    counts().copied += bytes;
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
// As on a GPU, a copy on the default stream does not wait for streams made with cudaStreamNonBlocking.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  drain(state().default_stream);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  enqueue(stream, [=] { std::memset(p, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  cudaMemsetAsync(p, value, bytes, nullptr);
  drain(state().default_stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const Lock lock(state().mutex);
  if (is_device(current_device) && (has_fault(current_device, "engine") ||
                                    (has_fault(current_device, "stream") && !state().streams.empty())))
    return keep(cudaErrorECCUncorrectable);
  *stream = new Stream;
  state().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  const cudaError_t error = cudaStreamCreateWithFlags(stream, flags);
  if (error == cudaSuccess) (*stream)->priority = priority;
  return error;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(state().mutex);
  drain(*stream);
  state().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++counts().waits;
  drain(stream_of(stream));
  return outcome();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream_of(stream).recording) return keep(cudaErrorStreamCaptureUnsupported);
  return advance(stream_of(stream)) ? cudaSuccess : keep(cudaErrorNotReady);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(state().mutex);
  // What is recorded later does not count.
  enqueue_until(stream,
                [event, on = event->stream, wanted = event->recorded] { return reach(*event, on, wanted); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new Event;
  (*event)->blocking = (flags & cudaEventBlockingSync) != 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaEventSynchronize(event);
  const Lock lock(state().mutex);
  state().ended.emplace_back(event);  // streams may be told to wait for it still
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(state().mutex);
  event->stream = &stream_of(stream);
  ++event->recorded;
  enqueue(stream, [event] {
    ++event->done;
    event->time = std::chrono::steady_clock::now();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++(event->blocking ? counts().sleeps : counts().waits);
  while (!reach(*event)) {
  }
  return outcome();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return reach(*event) ? cudaSuccess : keep(cudaErrorNotReady);
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  const Lock lock(state().mutex);
  if (from->done < from->recorded || to->done < to->recorded) return keep(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) {
  *can = a != b && is_device(a) && is_device(b);
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* p) {
  const Lock lock(state().mutex);
  *handle = {};
  return name_of(p, handle->reserved, sizeof(handle->reserved)) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t handle, unsigned) {
  const Lock lock(state().mutex);
  *p = std::getenv("ASSAY_EMULATED_NO_PEERS") != nullptr ? nullptr : open_other(handle.reserved);
  return *p == nullptr ? keep(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* p) {
  const Lock lock(state().mutex);
  return close_other(p) ? cudaSuccess : keep(cudaErrorInvalidValue);
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
