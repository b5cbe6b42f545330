// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/peer_memory.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/clock.hpp"
#include "kernels/chase.hpp"
#include "kernels/copy.hpp"

namespace assay::cuda {

CudaPeerMemory::CudaPeerMemory(Communicator& world, Device& device, CopyEngine engine,
                               const GpuSettings& settings)
    : world_(world), device_(device), engine_(engine), settings_(settings), me_(world.rank()) {}

CudaPeerMemory::~CudaPeerMemory() {
  for (const auto& [rank, stream] : streams_) cudaStreamSynchronize(stream.get());
  for (const auto& [rank, memory] : opened_) cudaIpcCloseMemHandle(memory);
}

/// What others need to open the arena, as bytes; empty where CUDA does not give it.
std::string CudaPeerMemory::exposed() {
  cudaIpcMemHandle_t handle;
  const cudaError_t error = cudaIpcGetMemHandle(&handle, device_.arena().data());
  if (error == cudaSuccess) return {reinterpret_cast<const char*>(&handle), sizeof handle};
  cudaGetLastError();  // reported here, so it is cleared
  refused_ = fmt::format("rank {}: cudaIpcGetMemHandle: {}", me_, cudaGetErrorString(error));
  return {};
}

void CudaPeerMemory::open(int rank, const std::string& text) {
  cudaIpcMemHandle_t handle;
  void* memory = nullptr;
  cudaError_t error = cudaErrorInvalidValue;
  if (text.size() == sizeof handle) {
    std::memcpy(&handle, text.data(), sizeof handle);
    error = cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
  }
  if (error == cudaSuccess) {
    opened_[rank] = memory;
    return;
  }
  cudaGetLastError();
  if (refused_.empty())
    refused_ = fmt::format("rank {} cannot open the GPU memory of rank {}: {}", me_, rank,
                           cudaGetErrorString(error));
}

std::unique_ptr<CudaPeerMemory> CudaPeerMemory::make(Communicator& world, Communicator& group, Device& device,
                                                     CopyEngine engine, const GpuSettings& settings) {
  std::unique_ptr<CudaPeerMemory> made(new CudaPeerMemory(world, device, engine, settings));
  const auto ranks = group.all_gather_text(std::to_string(made->me_));
  const auto handles = group.all_gather_text(made->exposed());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (const int rank = std::stoi(ranks[i]); rank != made->me_) made->open(rank, handles[i]);
  group.barrier();  // no rank goes on, and perhaps ends, while others open
  return made;
}

std::byte* CudaPeerMemory::at(int peer) const {
  const auto found = opened_.find(peer);
  if (found == opened_.end())
    throw Error(ErrorKind::mpi, fmt::format("the GPU memory of rank {} is not open to rank {}", peer, me_));
  return static_cast<std::byte*>(found->second);
}

void CudaPeerMemory::copy(void* to, const void* from, std::size_t bytes, int peer) {
  cudaStream_t stream = streams_[peer].get();
  if (engine_ == CopyEngine::dma)
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
  else
    kernels::cuda::copy(to, from, bytes, stream);
}

void CudaPeerMemory::make_chain(std::size_t offset, std::size_t bytes, std::uint64_t key) {
  kernels::cuda::chase_build(device_.arena().data() + offset, bytes, key, streams_[me_].get());
  complete(me_);
}

RemoteWalk CudaPeerMemory::walk_chain(int peer, std::size_t offset, std::size_t bytes, std::uint64_t key) {
  struct Found {
    kernels::ChaseEnd end;
    double elapsed_ns;
  } found{};
  if (!walked_) walked_.emplace(sizeof found);
  auto* result = static_cast<Found*>(walked_->data());
  cudaStream_t stream = streams_[peer].get();
  const std::byte* chain = at(peer) + offset;
  const auto fetch = [&](void* to, const void* from, std::size_t size) {
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
    complete(peer);
  };
  kernels::cuda::chase_walk(chain, bytes, key, 0, bytes / kernels::chase_node_bytes, &result->end,
                            &result->elapsed_ns, stream);
  fetch(&found, result, sizeof found);
  RemoteWalk walk{1e-9 * found.elapsed_ns, found.end.node, found.end.intact, {}};
  if (!walk.intact) fetch(walk.words, chain + walk.node * kernels::chase_node_bytes, sizeof walk.words);
  return walk;
}

void CudaPeerMemory::complete(int peer) {
  check_launch("a copy between GPUs");
  supervisor::Heartbeat nobody;
  const supervisor::InCall inside(settings_.heartbeat != nullptr ? *settings_.heartbeat : nobody,
                                  supervisor::Call::wait, world_.launch_rank(peer));
  for (;;) {
    const cudaError_t state = queried(cudaStreamQuery(streams_[peer].get()));
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check(state, "a copy between GPUs");
    if (now_s() > settings_.deadline_s)
      throw Error(
          ErrorKind::mpi,
          fmt::format("copies between the GPUs of ranks {} and {} are not over at the deadline", me_, peer));
  }
}

}  // namespace assay::cuda
