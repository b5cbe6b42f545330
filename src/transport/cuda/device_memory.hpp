// SPDX-License-Identifier: Apache-2.0
// Private to the transports between GPUs.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "device/cuda/check.hpp"
#include "device/device.hpp"

namespace assay::cuda {

inline bool lies_in(std::span<const std::byte> memory, const void* p) noexcept {
  const auto* at = static_cast<const std::byte*>(p);
  const std::less_equal<const std::byte*> le;
  return !memory.empty() && le(memory.data(), at) && !le(memory.data() + memory.size(), at);
}

/// Whether `p` lies in the arena of the device. What does not is host memory: devices hand out nothing else.
inline bool in_arena(Device& device, const void* p) noexcept { return lies_in(device.arena(), p); }

/// A stream that waits for no other one. Its blocks start before those of the device's own stream: messages
/// are not to wait behind products.
class Stream {
 public:
  Stream() {
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
          "cudaStreamCreateWithPriority");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Work of a stream that was recorded, ready to be started as a whole.
class Graph {
 public:
  explicit Graph(cudaGraphExec_t graph) : graph_(graph) {}
  ~Graph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  cudaGraphExec_t get() const noexcept { return graph_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// Host memory that GPUs read and write at full speed.
class Pinned {
 public:
  Pinned() = default;
  explicit Pinned(std::size_t bytes) : bytes_(bytes) {
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable), "cudaHostAlloc");
  }
  ~Pinned() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }
  Pinned(Pinned&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Pinned& operator=(Pinned&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  std::size_t size() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Device memory beside the arena.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  ~Scratch() {
    if (data_ != nullptr) cudaFree(data_);
  }
  Scratch(Scratch&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  void* data() const noexcept { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace assay::cuda
