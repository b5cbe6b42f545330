// SPDX-License-Identifier: Apache-2.0
// Broken links made on purpose.
#pragma once

#include <memory>
#include <vector>

#include "transport/communicator.hpp"

namespace assay {

/// What a FaultyCommunicator asks about every message of `payload_tag` that its rank receives. Ranks are
/// those of the job, whatever communicator the message used.
class MessageFaults {
 public:
  virtual ~MessageFaults() = default;
  /// True when the message from `source` shall never arrive: the receiver finds what lay in its buffer
  /// before.
  virtual bool lost(int source) = 0;
  /// Seconds to hold back what took `seconds` to come from `source`: 0 on a healthy link.
  virtual double hold_back_s(int source, double seconds) = 0;
  /// The message has arrived and may be changed.
  virtual void arrived(void* data, std::size_t bytes) = 0;
};

/// Forwards everything to another communicator, and makes faults where messages arrive. Nothing but payload
/// is touched, so that suites and harness stay in step. Parts made by split are faulty too.
class FaultyCommunicator final : public Communicator {
 public:
  /// `inner` and `faults` outlive this object. `job_ranks[i]` is rank i of `inner` in the job.
  FaultyCommunicator(Communicator& inner, MessageFaults& faults, std::vector<int> job_ranks);
  ~FaultyCommunicator() override;

  int rank() const noexcept override { return inner_.rank(); }
  int size() const noexcept override { return inner_.size(); }
  std::string_view transport() const noexcept override { return inner_.transport(); }
  std::string path() const override { return inner_.path(); }
  std::unique_ptr<Communicator> split(int color, int key) override;

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    inner_.send(data, bytes, peer, tag);
  }
  void recv(void* data, std::size_t bytes, int peer, int tag) override;
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    inner_.isend(data, bytes, peer, tag, request);
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void wait_all(std::span<Request> requests) override;
  bool test_all(std::span<Request> requests) override {
    // Messages that were asked for are held back and changed where they are waited for.
    if (pending_.empty()) return inner_.test_all(requests);
    wait_all(requests);
    return true;
  }
  bool serialized() const noexcept override { return inner_.serialized(); }
  void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) override {
    inner_.iall_reduce(data, count, type, op, request);
  }

  void barrier() override { inner_.barrier(); }
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    inner_.all_reduce(in, out, count, type, op);
  }
  void reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                      ReduceOp op) override {
    inner_.reduce_scatter(in, out, count_per_rank, type, op);
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

 private:
  /// A payload message that was asked for and is not complete.
  struct Pending {
    const Request* request;
    int source;
    void* data;
    std::size_t bytes;
    std::unique_ptr<std::byte[]> lost;  ///< where a lost message goes
  };
  void finish(const Pending& message);
  int job_rank(int peer) const { return job_ranks_[static_cast<std::size_t>(peer)]; }

  std::unique_ptr<Communicator> owned_;  ///< of a part
  Communicator& inner_;
  MessageFaults& faults_;
  std::vector<int> job_ranks_;
  std::vector<Pending> pending_;
};

}  // namespace assay
