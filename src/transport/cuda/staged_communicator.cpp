// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/staged_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

namespace assay::cuda {
namespace {

/// Behind the number of a request, where those of MPI and UCX have 0 or 1: it is one of ours.
constexpr std::byte staged_mark{0x53};
bool is_staged(const Request& request) noexcept { return request.storage[8] == staged_mark; }
std::uint64_t number_of(const Request& request) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, request.storage, sizeof number);
  return number;
}

}  // namespace

StagedCommunicator::StagedCommunicator(Communicator& below, Device& device, bool direct,
                                       supervisor::Heartbeat* heartbeat)
    : ForwardingCommunicator(below), device_(device), direct_(direct), heartbeat_(heartbeat) {}

std::string StagedCommunicator::path() const {
  return fmt::format("{}:{} {}", inner_.transport(), direct_ ? "gpu-direct" : "staged", inner_.path());
}

std::unique_ptr<Communicator> StagedCommunicator::split(int color, int key) {
  auto part = inner_.split(color, key);
  if (part == nullptr) return nullptr;
  auto staged = std::make_unique<StagedCommunicator>(*part, device_, direct_, heartbeat_);
  staged->owned_ = std::move(part);
  return staged;
}

void StagedCommunicator::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
}
void StagedCommunicator::synchronize() {
  check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize");
}

Pinned StagedCommunicator::take(std::size_t bytes) {
  const auto fits = std::find_if(spare_.begin(), spare_.end(), [&](const Pinned& p) {
    return p.size() >= bytes && p.size() < 4 * bytes + 4096;
  });
  if (fits == spare_.end()) return Pinned(std::max<std::size_t>(bytes, 4096));
  Pinned found = std::move(*fits);
  spare_.erase(fits);
  return found;
}
void StagedCommunicator::give(Pinned buffer) { spare_.push_back(std::move(buffer)); }

// Messages.

void StagedCommunicator::start(void* data, std::size_t bytes, int peer, int tag, bool send,
                               Request& request) {
  const std::size_t needed = std::min(bytes, piece_bytes * pieces_at_once);
  Transfer t{send, static_cast<std::byte*>(data), bytes, peer, tag, take(needed)};
  const std::uint64_t number = next_++;
  transfers_.emplace(number, std::move(t));
  request = Request{};
  std::memcpy(request.storage, &number, sizeof number);
  request.storage[8] = staged_mark;
}

/// Pieces are handed to MPI in the order of their numbers, so that the other end finds them in it.
void StagedCommunicator::advance_send(Transfer& t) {
  for (; t.begun < t.count() && t.begun - t.ended < pieces_at_once; ++t.begun) {
    copy(t.staged(t.begun), t.data + t.begun * piece_bytes, t.size_of(t.begun));
    check(cudaEventRecord(t.at(t.begun).copied.get(), stream_.get()), "cudaEventRecord");
  }
  for (; t.halfway < t.begun; ++t.halfway) {
    const cudaError_t state = queried(cudaEventQuery(t.at(t.halfway).copied.get()));
    if (state == cudaErrorNotReady) break;
    check(state, "a copy from the GPU");
    inner_.isend(t.staged(t.halfway), t.size_of(t.halfway), t.peer, t.tag, t.at(t.halfway).message);
  }
  while (t.ended < t.halfway && inner_.test_all({&t.at(t.ended).message, 1})) ++t.ended;
}

void StagedCommunicator::advance_recv(Transfer& t) {
  for (; t.begun < t.count() && t.begun - t.ended < pieces_at_once; ++t.begun)
    inner_.irecv(t.staged(t.begun), t.size_of(t.begun), t.peer, t.tag, t.at(t.begun).message);
  for (; t.halfway < t.begun && inner_.test_all({&t.at(t.halfway).message, 1}); ++t.halfway) {
    copy(t.data + t.halfway * piece_bytes, t.staged(t.halfway), t.size_of(t.halfway));
    check(cudaEventRecord(t.at(t.halfway).copied.get(), stream_.get()), "cudaEventRecord");
  }
  for (; t.ended < t.halfway; ++t.ended) {
    const cudaError_t state = queried(cudaEventQuery(t.at(t.ended).copied.get()));
    if (state == cudaErrorNotReady) break;
    check(state, "a copy to the GPU");
  }
}

/// Messages of different partners wait for each other nowhere; those of one follow each other, piece by
/// piece, as at the other end.
void StagedCommunicator::progress() {
  std::set<std::tuple<bool, int, int>> busy;
  for (auto next = transfers_.begin(); next != transfers_.end();) {
    auto& [number, t] = *next;
    const auto channel = std::tuple(t.send, t.peer, t.tag);
    if (busy.contains(channel)) {
      ++next;
      continue;
    }
    if (t.send)
      advance_send(t);
    else
      advance_recv(t);
    if ((t.send ? t.halfway : t.begun) < t.count()) busy.insert(channel);
    if (t.ended < t.count()) {
      ++next;
      continue;
    }
    give(std::move(t.buffer));
    next = transfers_.erase(next);
  }
}

void StagedCommunicator::isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) {
  if (!mine(data, tag)) return inner_.isend(data, bytes, peer, tag, request);
  start(const_cast<void*>(data), bytes, peer, tag, true, request);
  progress();
}
void StagedCommunicator::irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) {
  if (!mine(data, tag)) return inner_.irecv(data, bytes, peer, tag, request);
  start(data, bytes, peer, tag, false, request);
  progress();
}

void StagedCommunicator::send(const void* data, std::size_t bytes, int peer, int tag) {
  if (!mine(data, tag)) return inner_.send(data, bytes, peer, tag);
  if (bytes > piece_bytes || !transfers_.empty()) {
    Request request;
    isend(data, bytes, peer, tag, request);
    return wait_all({&request, 1});
  }
  // A small one by itself: nothing to overlap with.
  copy(room(bytes), data, bytes);
  synchronize();
  inner_.send(room(bytes), bytes, peer, tag);
}
void StagedCommunicator::recv(void* data, std::size_t bytes, int peer, int tag) {
  if (!mine(data, tag)) return inner_.recv(data, bytes, peer, tag);
  if (bytes > piece_bytes || !transfers_.empty()) {
    Request request;
    irecv(data, bytes, peer, tag, request);
    return wait_all({&request, 1});
  }
  inner_.recv(room(bytes), bytes, peer, tag);
  copy(data, room(bytes), bytes);
  synchronize();
}

bool StagedCommunicator::test_all(std::span<Request> requests) {
  progress();
  bool all = true;
  for (Request& request : requests) {
    if (!is_staged(request))
      all = inner_.test_all({&request, 1}) && all;
    else if (transfers_.contains(number_of(request)))
      all = false;
    else
      request = Request{};
  }
  return all;
}

void StagedCommunicator::wait_all(std::span<Request> requests) {
  if (std::none_of(requests.begin(), requests.end(), is_staged)) return inner_.wait_all(requests);
  std::optional<supervisor::InCall> mark;
  while (!test_all(requests)) {
    if (look_) look_();
    if (heartbeat_ == nullptr) continue;
    const auto peer = waits_for();
    if (!peer)
      mark.reset();
    else if (!mark)
      mark.emplace(*heartbeat_, supervisor::Call::wait, launch_rank(*peer));
  }
}

std::optional<int> StagedCommunicator::waits_for() const noexcept {
  std::optional<int> peer;
  for (const auto& [number, t] : transfers_) {
    const bool copies = t.send ? t.halfway < t.begun : t.ended < t.halfway;
    if (copies) return std::nullopt;
    if (t.ended < t.begun) peer = t.peer;
  }
  return peer;
}

void StagedCommunicator::abandon(std::span<Request> requests) {
  for (Request& request : requests) {
    if (!is_staged(request)) {
      inner_.abandon({&request, 1});
      continue;
    }
    if (const auto found = transfers_.find(number_of(request)); found != transfers_.end()) {
      for (Piece& piece : found->second.pieces) inner_.abandon({&piece.message, 1});
      transfers_.erase(found);
    }
    request = Request{};
  }
}

void StagedCommunicator::order_after(void* stream) {
  if (direct_)
    return check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "cudaStreamSynchronize");
  const Event event;
  check(cudaEventRecord(event.get(), static_cast<cudaStream_t>(stream)), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_.get(), event.get(), 0), "cudaStreamWaitEvent");
}
void StagedCommunicator::order_before(void* /*stream*/, Request& request) { wait_all({&request, 1}); }

// Collectives.

std::byte* StagedCommunicator::room(std::size_t bytes) {
  if (room_.size() < bytes || room_.size() == 0) room_ = Pinned(std::max(bytes, std::size_t{4096}));
  return room_.data();
}

/// Part after part, the copies of one beside the operation on the other. All copies are on one stream, so a
/// part is filled anew only after its result has left.
template <typename Operation>
void StagedCommunicator::in_parts(const void* in, void* out, std::size_t bytes, bool reads, bool writes,
                                  Operation&& operation) {
  std::byte* rooms = room(2 * std::min(bytes, part_bytes));
  const Event copied[2];
  const auto fetch = [&](std::size_t at) {
    const std::size_t n = std::min(part_bytes, bytes - at), slot = at / part_bytes % 2;
    if (reads) copy(rooms + slot * part_bytes, static_cast<const std::byte*>(in) + at, n);
    check(cudaEventRecord(copied[slot].get(), stream_.get()), "cudaEventRecord");
  };
  fetch(0);
  for (std::size_t at = 0; at < bytes; at += part_bytes) {
    const std::size_t n = std::min(part_bytes, bytes - at), slot = at / part_bytes % 2;
    if (at + part_bytes < bytes) fetch(at + part_bytes);
    check(cudaEventSynchronize(copied[slot].get()), "cudaEventSynchronize");
    operation(rooms + slot * part_bytes, n);
    if (writes) copy(static_cast<std::byte*>(out) + at, rooms + slot * part_bytes, n);
  }
  synchronize();
}

template <typename Operation>
void StagedCommunicator::whole(const void* in, std::size_t in_bytes, void* out, std::size_t out_bytes,
                               Operation&& operation) {
  std::byte* source = room(in_bytes + out_bytes);
  copy(source, in, in_bytes);
  synchronize();
  operation(source, source + in_bytes);
  copy(out, source + in_bytes, out_bytes);
  synchronize();
}

void StagedCommunicator::reduce_host(void* data, std::size_t count, DataType type, ReduceOp op) {
  if (type != DataType::bf16) return inner_.all_reduce(data, data, count, type, op);
  auto* narrow = static_cast<std::uint16_t*>(data);
  wide_.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    wide_[i] = std::bit_cast<float>(static_cast<std::uint32_t>(narrow[i]) << 16);
  inner_.all_reduce(wide_.data(), wide_.data(), count, DataType::fp32, op);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(wide_[i]);
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;  // rounding could make it infinite
    narrow[i] =
        static_cast<std::uint16_t>(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
}

void StagedCommunicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                    ReduceOp op) {
  if (count == 0 || !mine(out)) return inner_.all_reduce(in, out, count, type, op);
  const std::size_t width = assay::size_of(type);
  in_parts(in, out, count * width, true, true,
           [&](std::byte* part, std::size_t n) { reduce_host(part, n / width, type, op); });
}

void StagedCommunicator::iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op,
                                     Request& request) {
  if (count == 0 || !mine(data)) return inner_.iall_reduce(data, count, type, op, request);
  all_reduce(data, data, count, type, op);
  request = {};
}

void StagedCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                        ReduceOp op) {
  if (count == 0 || !mine(out)) return inner_.reduce_scatter(in, out, count, type, op);
  const std::size_t bytes = count * assay::size_of(type);
  whole(in, bytes * static_cast<std::size_t>(size()), out, bytes,
        [&](const std::byte* from, std::byte* to) { inner_.reduce_scatter(from, to, count, type, op); });
}

void StagedCommunicator::ireduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                         ReduceOp op, Request& request) {
  if (count == 0 || !mine(out)) return inner_.ireduce_scatter(in, out, count, type, op, request);
  reduce_scatter(in, out, count, type, op);
  request = {};
}

void StagedCommunicator::all_gather(const void* in, void* out, std::size_t bytes) {
  if (bytes == 0 || !mine(out)) return inner_.all_gather(in, out, bytes);
  whole(in, bytes, out, bytes * static_cast<std::size_t>(size()),
        [&](const std::byte* from, std::byte* to) { inner_.all_gather(from, to, bytes); });
}

void StagedCommunicator::all_to_all(const void* in, void* out, std::size_t bytes) {
  if (bytes == 0 || !mine(out)) return inner_.all_to_all(in, out, bytes);
  const std::size_t all = bytes * static_cast<std::size_t>(size());
  whole(in, all, out, all, [&](const std::byte* from, std::byte* to) { inner_.all_to_all(from, to, bytes); });
}

void StagedCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  if (bytes == 0 || !mine(data)) return inner_.broadcast(data, bytes, root);
  const bool sends = rank() == root;
  in_parts(data, data, bytes, sends, !sends,
           [&](std::byte* part, std::size_t n) { inner_.broadcast(part, n, root); });
}

}  // namespace assay::cuda
