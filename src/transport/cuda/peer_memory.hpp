// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/cuda/device_memory.hpp"
#include "transport/gpu_transports.hpp"

namespace assay::cuda {

/// Each rank opens the arenas of the others by CUDA IPC and copies to and from them on streams of its own:
/// without MPI, and without the other rank. A wait ends at the deadline with Error(mpi).
class CudaPeerMemory final : public PeerMemory {
 public:
  /// Collective over `group`, the ranks of one node; `world` outlives this object. Arenas are not grown while
  /// this lives.
  static std::unique_ptr<CudaPeerMemory> make(Communicator& world, Communicator& group, Device& device,
                                              CopyEngine engine, const GpuSettings& settings);
  ~CudaPeerMemory() override;
  CudaPeerMemory(const CudaPeerMemory&) = delete;
  CudaPeerMemory& operator=(const CudaPeerMemory&) = delete;

  const std::string& refused() const noexcept override { return refused_; }
  std::string path() const override { return engine_ == CopyEngine::dma ? "cuda/ce" : "cuda/sm"; }

  void put(const void* data, std::size_t bytes, int peer, std::size_t offset) override {
    copy(at(peer) + offset, data, bytes, peer);
  }
  void get(void* data, std::size_t bytes, int peer, std::size_t offset) override {
    copy(data, at(peer) + offset, bytes, peer);
  }
  void complete(int peer) override;
  void make_chain(std::size_t offset, std::size_t bytes, std::uint64_t key) override;
  RemoteWalk walk_chain(int peer, std::size_t offset, std::size_t bytes, std::uint64_t key) override;

 private:
  CudaPeerMemory(Communicator& world, Device& device, CopyEngine engine, const GpuSettings& settings);
  std::string exposed();
  void open(int rank, const std::string& handle);
  std::byte* at(int peer) const;
  void copy(void* to, const void* from, std::size_t bytes, int peer);

  Communicator& world_;
  Device& device_;
  CopyEngine engine_;
  GpuSettings settings_;
  int me_;
  std::map<int, Stream> streams_;  ///< by peer, so that copies to different ones run at once
  std::optional<Scratch> walked_;  ///< what the last walk has found
  std::map<int, void*> opened_;    ///< arenas by rank of the world
  std::string refused_;
};

}  // namespace assay::cuda
