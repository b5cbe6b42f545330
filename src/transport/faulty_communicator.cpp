// SPDX-License-Identifier: Apache-2.0
#include "transport/faulty_communicator.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.hpp"

namespace assay {
namespace {

/// A link that is slow keeps its receiver busy waiting, as a transfer would.
void hold(double seconds) noexcept {
  const double end = now_s() + seconds;
  while (now_s() < end) {
  }
}

}  // namespace

FaultyCommunicator::FaultyCommunicator(Communicator& inner, MessageFaults& faults, std::vector<int> job_ranks)
    : ForwardingCommunicator(inner), faults_(faults), job_ranks_(std::move(job_ranks)) {}

FaultyCommunicator::~FaultyCommunicator() = default;

std::unique_ptr<Communicator> FaultyCommunicator::split(int color, int key) {
  auto part = inner_.split(color, key);
  if (part == nullptr) return nullptr;
  const int me = job_rank(rank());
  std::vector<int> members(static_cast<std::size_t>(part->size()));
  part->all_gather(&me, members.data(), sizeof me);
  auto faulty = std::make_unique<FaultyCommunicator>(*part, faults_, std::move(members));
  faulty->owned_ = std::move(part);
  return faulty;
}

void FaultyCommunicator::recv(void* data, std::size_t bytes, int peer, int tag) {
  if (tag != payload_tag) return inner_.recv(data, bytes, peer, tag);
  const int source = job_rank(peer);
  Pending message{nullptr, source, data, bytes, nullptr};
  if (faults_.lost(source)) message.lost = std::make_unique<std::byte[]>(bytes);
  const double begin = now_s();
  inner_.recv(message.lost ? message.lost.get() : data, bytes, peer, tag);
  // In an exchange of turns half of the wait was this message's way, the other half that of the message it
  // answers.
  hold(faults_.hold_back_s(source, (now_s() - begin) / 2));
  finish(message);
}

void FaultyCommunicator::irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) {
  if (tag != payload_tag) return inner_.irecv(data, bytes, peer, tag, request);
  Pending message{&request, job_rank(peer), data, bytes, nullptr};
  if (faults_.lost(message.source)) message.lost = std::make_unique<std::byte[]>(bytes);
  inner_.irecv(message.lost ? message.lost.get() : data, bytes, peer, tag, request);
  pending_.push_back(std::move(message));
}

void FaultyCommunicator::wait_all(std::span<Request> requests) {
  const double begin = now_s();
  inner_.wait_all(requests);
  const double seconds = now_s() - begin;
  const std::less<const Request*> before;  // pointers into different arrays
  const auto done = std::stable_partition(pending_.begin(), pending_.end(), [&](const Pending& message) {
    return before(message.request, requests.data()) ||
           !before(message.request, requests.data() + requests.size());
  });
  // They flew together: each link of the group is held back once.
  std::vector<int> sources;
  for (auto message = done; message != pending_.end(); ++message) {
    if (std::find(sources.begin(), sources.end(), message->source) == sources.end()) {
      sources.push_back(message->source);
      hold(faults_.hold_back_s(message->source, seconds));
    }
    finish(*message);
  }
  pending_.erase(done, pending_.end());
}

void FaultyCommunicator::finish(const Pending& message) {
  if (!message.lost) faults_.arrived(message.data, message.bytes);
}

}  // namespace assay
