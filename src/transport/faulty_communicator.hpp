// SPDX-License-Identifier: Apache-2.0
// Broken links made on purpose.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "transport/forwarding_communicator.hpp"

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
class FaultyCommunicator final : public ForwardingCommunicator {
 public:
  /// `inner` and `faults` outlive this object. `job_ranks[i]` is rank i of `inner` in the job.
  FaultyCommunicator(Communicator& inner, MessageFaults& faults, std::vector<int> job_ranks);
  ~FaultyCommunicator() override;

  std::unique_ptr<Communicator> split(int color, int key) override;
  void recv(void* data, std::size_t bytes, int peer, int tag) override;
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void wait_all(std::span<Request> requests) override;
  bool test_all(std::span<Request> requests) override {
    // Messages that were asked for are held back and changed where they are waited for.
    if (std::none_of(pending_.begin(), pending_.end(), [&](const Pending& message) {
          return std::any_of(requests.begin(), requests.end(),
                             [&](const Request& r) { return &r == message.request; });
        }))
      return inner_.test_all(requests);
    wait_all(requests);
    return true;
  }
  void abandon(std::span<Request> requests) override {
    inner_.abandon(requests);
    pending_.clear();
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
  MessageFaults& faults_;
  std::vector<int> job_ranks_;
  std::vector<Pending> pending_;
};

}  // namespace assay
