// SPDX-License-Identifier: Apache-2.0
// Runs single cases of a suite on the ranks of the test, on a made-up topology, through a communicator that
// can corrupt what arrives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "topology/entities.hpp"
#include "transport/communicator.hpp"
#include "transport/gpu_links.hpp"

namespace assay {

/// What to corrupt: on this rank, the n-th transfer that matches, and `times` in all, get one bit flipped
/// after they arrived.
struct Corruption {
  int rank = -1;
  int tag = -1;  ///< messages of this tag; -1 = results of all_reduce on fp32
  std::size_t least_bytes = 0;
  std::size_t nth = 0;
  std::size_t byte = 0;
  std::size_t times = 1;
  int hits = 0;        ///< how often it was done
  int slow_peer = -1;  ///< to which what this rank sends with `tag` comes `delay_s` later
  double delay_s = 0;
};

/// Forwards everything, and corrupts as told. Parts made by split share the corruption.
class CorruptingCommunicator final : public Communicator {
 public:
  CorruptingCommunicator(std::unique_ptr<Communicator> inner, int world_rank,
                         std::shared_ptr<Corruption> corruption)
      : inner_(std::move(inner)), world_rank_(world_rank), corruption_(std::move(corruption)) {}

  int rank() const noexcept override { return inner_->rank(); }
  int size() const noexcept override { return inner_->size(); }
  std::string_view transport() const noexcept override { return inner_->transport(); }
  std::string path() const override { return inner_->path(); }
  std::unique_ptr<Communicator> split(int color, int key) override;
  void send(const void* data, std::size_t bytes, int peer, int tag) override;
  void recv(void* data, std::size_t bytes, int peer, int tag) override;
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_->isend(data, bytes, peer, tag, request);
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void wait_all(std::span<Request> requests) override;
  void barrier() override { inner_->barrier(); }
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override;
  void reduce_scatter(const void* in, void* out, std::size_t n, DataType type, ReduceOp op) override {
    inner_->reduce_scatter(in, out, n, type, op);
  }
  void all_gather(const void* in, void* out, std::size_t bytes) override {
    inner_->all_gather(in, out, bytes);
  }
  void all_to_all(const void* in, void* out, std::size_t bytes) override {
    inner_->all_to_all(in, out, bytes);
  }
  void broadcast(void* data, std::size_t bytes, int root) override { inner_->broadcast(data, bytes, root); }
  void quiet_barrier() override { inner_->quiet_barrier(); }
  std::vector<std::string> gather_text(const std::string& mine, int root) override {
    return inner_->gather_text(mine, root);
  }
  std::vector<std::string> all_gather_text(const std::string& mine) override {
    return inner_->all_gather_text(mine);
  }
  std::string broadcast_text(const std::string& mine, int root) override {
    return inner_->broadcast_text(mine, root);
  }

 private:
  bool due(int tag, std::size_t bytes);

  std::unique_ptr<Communicator> inner_;
  int world_rank_;
  std::shared_ptr<Corruption> corruption_;
  std::size_t seen_ = 0;
  std::byte* pending_ = nullptr;
};

class SuiteRig {
 public:
  /// The ranks of the test as `nodes` nodes of equal size (the last ones smaller).
  explicit SuiteRig(Suite& suite, int nodes = 1, Level level = Level::smoke);
  /// The same on GPUs, without corruption; `device` is this rank's.
  SuiteRig(Suite& suite, int nodes, Level level, std::unique_ptr<Device> device);

  void option(const std::string& name, const std::string& text);
  std::vector<Case> plan();
  Case planned(const std::string& name);
  /// As a run does before its first case, for suites that need it.
  void prepare();
  /// Plans, runs the named case on all ranks, and gives this rank's record.
  CaseRecord run(const std::string& name) { return run(planned(name)); }
  /// `seconds` of measurement; by default those planned, but no more than 0.3.
  CaseRecord run(Case c, double seconds_to_deadline = 60, std::optional<double> seconds = {});

  int rank() const { return world_->rank(); }
  int size() const { return world_->size(); }
  const Topology& topology() const { return topology_; }
  const EntityTable& entities() const { return *entities_; }
  Communicator& world() { return links_ ? links_->world() : *world_; }
  Corruption& corruption() { return *corruption_; }
  /// Rows of all ranks together, and the worst state.
  double total(double mine) { return world_->sum(mine); }

 private:
  Suite& suite_;
  Config config_;
  Topology topology_;
  std::shared_ptr<Corruption> corruption_;
  std::unique_ptr<Communicator> world_, node_, leaders_;
  std::unique_ptr<EntityTable> entities_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<GpuLinks> links_;
};

}  // namespace assay
