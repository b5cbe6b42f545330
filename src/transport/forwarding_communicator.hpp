// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport/communicator.hpp"

namespace assay {

/// Hands every call to another communicator; those that stand before one override what they do differently.
class ForwardingCommunicator : public Communicator {
 public:
  /// `inner` outlives this object.
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}

  int rank() const noexcept override { return inner_.rank(); }
  int size() const noexcept override { return inner_.size(); }
  int launch_rank(int peer) const noexcept override { return inner_.launch_rank(peer); }
  std::string_view transport() const noexcept override { return inner_.transport(); }
  std::string path() const override { return inner_.path(); }
  std::unique_ptr<Communicator> split(int color, int key) override { return inner_.split(color, key); }

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    inner_.send(data, bytes, peer, tag);
  }
  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    inner_.recv(data, bytes, peer, tag);
  }
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_.isend(data, bytes, peer, tag, request);
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_.irecv(data, bytes, peer, tag, request);
  }
  void wait_all(std::span<Request> requests) override { inner_.wait_all(requests); }
  bool test_all(std::span<Request> requests) override { return inner_.test_all(requests); }
  void order_after(void* stream) override { inner_.order_after(stream); }
  void order_before(void* stream, Request& request) override { inner_.order_before(stream, request); }
  void begin_batch() override { inner_.begin_batch(); }
  void end_batch() override { inner_.end_batch(); }
  DeviceCollectives* device_collectives() noexcept override { return inner_.device_collectives(); }
  void give_up_at(double deadline_s) override { inner_.give_up_at(deadline_s); }
  void while_waiting(const std::function<void()>& look) override { inner_.while_waiting(look); }
  void abandon(std::span<Request> requests) override { inner_.abandon(requests); }
  bool usable() const noexcept override { return inner_.usable(); }
  bool serialized() const noexcept override { return inner_.serialized(); }

  void barrier() override { inner_.barrier(); }
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    inner_.all_reduce(in, out, count, type, op);
  }
  void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) override {
    inner_.iall_reduce(data, count, type, op, request);
  }
  void reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                      ReduceOp op) override {
    inner_.reduce_scatter(in, out, count_per_rank, type, op);
  }
  void ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type, ReduceOp op,
                       Request& request) override {
    inner_.ireduce_scatter(in, out, count_per_rank, type, op, request);
  }
  void all_gather(const void* in, void* out, std::size_t bytes_per_rank) override {
    inner_.all_gather(in, out, bytes_per_rank);
  }
  void all_to_all(const void* in, void* out, std::size_t bytes_per_rank) override {
    inner_.all_to_all(in, out, bytes_per_rank);
  }
  void broadcast(void* data, std::size_t bytes, int root) override { inner_.broadcast(data, bytes, root); }

  void quiet_barrier() override { inner_.quiet_barrier(); }
  std::vector<std::string> gather_text(const std::string& mine, int root) override {
    return inner_.gather_text(mine, root);
  }
  std::vector<std::string> all_gather_text(const std::string& mine) override {
    return inner_.all_gather_text(mine);
  }
  std::string broadcast_text(const std::string& mine, int root) override {
    return inner_.broadcast_text(mine, root);
  }

 protected:
  Communicator& inner_;
};

}  // namespace assay
