// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/nccl_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "transport/cuda/nccl_types.hpp"

namespace assay::cuda {
namespace {

using supervisor::Call;
using supervisor::InCall;

/// A request that NCCL serves says so behind its number, where those of MPI and UCX have 0 or 1; they belong
/// to the communicator behind.
constexpr std::byte ours{0x4e};
bool is_ours(const Request& request) noexcept { return request.storage[8] == ours; }

std::uint64_t load(const Request& request) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, request.storage, sizeof number);
  return number;
}
void store(Request& request, std::uint64_t number) noexcept {
  request = Request{};
  std::memcpy(request.storage, &number, sizeof number);
  request.storage[8] = ours;
}
bool failed(ncclResult_t result) noexcept { return result != ncclSuccess && result != ncclInProgress; }

}  // namespace

// Waiting.

void NcclCommunicator::check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess || result == ncclInProgress) [[likely]]
    return;
  const char* detail = comm_ != nullptr ? nccl_.get_last_error(comm_) : nullptr;
  const std::string more =
      detail != nullptr && *detail != '\0' ? fmt::format(" ({})", detail) : std::string();
  give_up(fmt::format("{}: {}{}; {}", call, nccl_.get_error_string(result), more, doing()));
}

/// A group belongs to the thread: one that is left open would swallow what other communicators send later. It
/// is closed before an error inside of it ends the communicator.
template <typename Calls>
ncclResult_t NcclCommunicator::group(Calls&& calls) {
  check(nccl_.group_start(), "ncclGroupStart");
  const ncclResult_t inside = calls();
  const ncclResult_t ended = nccl_.group_end();
  return inside != ncclSuccess ? inside : ended;
}

ncclResult_t NcclCommunicator::async_state() {
  ncclResult_t state = ncclSuccess;
  check(nccl_.comm_get_async_error(comm_, &state), "ncclCommGetAsyncError");
  check(state, last_.name);
  return state;
}

/// Polls until `query` has its answer: true when what is waited for has happened.
template <typename Query>
void NcclCommunicator::wait(Query&& query) {
  for (;;) {
    if (query()) return;
    if (comm_ == nullptr) throw Error(ErrorKind::mpi, "NCCL: the communicator was given up");
    async_state();
    if (now_s() > settings_.deadline_s) give_up("not over at the deadline: " + doing());
    if (!look_) continue;
    try {
      look_();
    } catch (const Error& e) {
      give_up(std::string(e.what()) + "; " + doing());
    }
  }
}

/// The first operation of its kind connects to other ranks, and may wait for one that is gone: in a thread of
/// its own, so that this one can give up, which ends the call.
ncclResult_t NcclCommunicator::apart(const std::function<ncclResult_t()>& call) {
  int device = 0;
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  std::atomic<bool> over = false;
  ncclResult_t result = ncclSuccess;
  std::thread thread([&] {
    result = cudaSetDevice(device) == cudaSuccess ? call() : ncclUnhandledCudaError;
    over = true;
  });
  try {
    wait([&] { return over.load(); });
  } catch (...) {
    thread.join();
    throw;
  }
  thread.join();
  return result;
}

/// A communicator that does not block goes on by itself after a call; the stream says nothing before that is
/// over.
void NcclCommunicator::settle(ncclResult_t result) {
  check(result, last_.name);
  if (result == ncclSuccess) [[likely]]
    return;
  wait([&] { return async_state() == ncclSuccess; });
}

void NcclCommunicator::wait_stream() {
  const InCall inside(*heartbeat_, last_.call, awaited());
  wait([&] {
    const cudaError_t state = cuda::queried(cudaStreamQuery(stream_.get()));
    if (state != cudaErrorNotReady) cuda::check(state, last_.name);
    return state == cudaSuccess;
  });
}

Event& NcclCommunicator::mark() {
  Event event;
  if (!free_events_.empty()) {
    event = std::move(free_events_.back());
    free_events_.pop_back();
  }
  cuda::check(cudaEventRecord(event.get(), stream_.get()), "cudaEventRecord");
  marks_.push_back({operations_, std::move(event)});
  return marks_.back().event;
}

bool NcclCommunicator::passed(std::uint64_t number) {
  while (!marks_.empty() && marks_.front().number <= number) {
    const cudaError_t state = cuda::queried(cudaEventQuery(marks_.front().event.get()));
    if (state == cudaErrorNotReady) return false;
    cuda::check(state, last_.name);
    free_events_.push_back(std::move(marks_.front().event));
    marks_.pop_front();
  }
  return true;
}

void NcclCommunicator::wait_for(std::uint64_t number) {
  wait([&] { return passed(number); });
}

// Operations.

template <typename Call>
void NcclCommunicator::launch(const Operation& operation, Call&& call) {
  if (comm_ == nullptr)
    throw Error(ErrorKind::mpi, fmt::format("NCCL: {} after the communicator was given up", operation.name));
  last_ = operation;
  ++operations_;
  const InCall inside(*heartbeat_, last_.call, awaited());
  const bool known =
      !blocks_ ||
      !called_.insert(fmt::format("{} {} {}", operation.name, operation.bytes, operation.peer)).second;
  settle(known ? call() : apart(call));
}

template <typename Call>
void NcclCommunicator::collective(const Operation& operation, Call&& call) {
  launch_transfers();
  launch(operation, std::forward<Call>(call));
  if (!in_batch_) wait_stream();
}

template <typename Call>
void NcclCommunicator::begin_collective(const Operation& operation, Request& request, Call&& call) {
  launch_transfers();
  launch(operation, std::forward<Call>(call));
  mark();
  store(request, operations_);
}

void NcclCommunicator::end_batch() {
  in_batch_ = false;
  if (operations_ > 0 && comm_ != nullptr) wait_stream();
}

void NcclCommunicator::launch_transfers() {
  if (transfers_.empty()) return;
  const auto transfers = std::exchange(transfers_, {});
  std::size_t bytes = 0;
  for (const Transfer& t : transfers) bytes += t.bytes;
  const bool alone = transfers.size() == 1;
  const bool sends = transfers.front().send;
  launch({!alone  ? "a group of sends and receives"
          : sends ? "ncclSend"
                  : "ncclRecv",
          bytes, transfers.front().peer,
          !alone  ? Call::wait
          : sends ? Call::send
                  : Call::receive},
         [&] {
           return group([&] {
             for (const Transfer& t : transfers) {
               const ncclResult_t result =
                   t.send ? nccl_.send(t.data, t.bytes, ncclInt8, t.peer, comm_, stream_.get())
                          : nccl_.recv(t.data, t.bytes, ncclInt8, t.peer, comm_, stream_.get());
               if (failed(result)) return result;
             }
             return ncclSuccess;
           });
         });
  for (const Delivery& d : std::exchange(deliveries_, {}))
    cuda::check(cudaMemcpyAsync(d.host, d.device, d.bytes, cudaMemcpyDeviceToHost, stream_.get()),
                "cudaMemcpyAsync");
  mark();
}

void NcclCommunicator::start(void* data, std::size_t bytes, int peer, bool send, Request& request) {
  request = Request{};
  if (peer < 0 || peer >= size())
    throw Error(ErrorKind::mpi, fmt::format("NCCL: there is no rank {} among {}", peer, size()));
  if (bytes == 0) return;
  transfers_.push_back({data, bytes, peer, send});
  store(request, operations_ + 1);
}

/// Payload goes from GPU to GPU whatever buffer it is given: a fault made on purpose throws a message away by
/// taking it to the host.
void* NcclCommunicator::to_here(void* data, std::size_t bytes) {
  if (mine(data)) return data;
  if (transfers_.empty() && passed(operations_)) aside_.clear();
  aside_.emplace_back(bytes);
  deliveries_.push_back({data, aside_.back().data(), bytes});
  return aside_.back().data();
}

void NcclCommunicator::isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) {
  if (!mine(data)) return inner_.isend(data, bytes, peer, tag, request);
  start(const_cast<void*>(data), bytes, peer, true, request);
}
void NcclCommunicator::irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) {
  if (!mine(data) && tag != payload_tag) return inner_.irecv(data, bytes, peer, tag, request);
  start(bytes == 0 ? data : to_here(data, bytes), bytes, peer, false, request);
}
void NcclCommunicator::send(const void* data, std::size_t bytes, int peer, int tag) {
  if (!mine(data)) return inner_.send(data, bytes, peer, tag);
  Request request;
  isend(data, bytes, peer, tag, request);
  wait_all({&request, 1});
}
void NcclCommunicator::recv(void* data, std::size_t bytes, int peer, int tag) {
  if (!mine(data) && tag != payload_tag) return inner_.recv(data, bytes, peer, tag);
  Request request;
  irecv(data, bytes, peer, tag, request);
  wait_all({&request, 1});
}

void NcclCommunicator::wait_all(std::span<Request> requests) {
  std::uint64_t latest = 0;
  bool others = false;
  for (const Request& request : requests) {
    if (is_ours(request))
      latest = std::max(latest, load(request));
    else
      others = true;
  }
  if (latest > operations_) launch_transfers();
  if (latest > 0) {
    const InCall inside(*heartbeat_, Call::wait, awaited());
    wait_for(latest);
    for (Request& request : requests)
      if (is_ours(request)) request = Request{};
  }
  if (others) inner_.wait_all(requests);
}

bool NcclCommunicator::test_all(std::span<Request> requests) {
  bool all = true;
  for (Request& request : requests) {
    if (!is_ours(request)) {
      all = inner_.test_all({&request, 1}) && all;
      continue;
    }
    launch_transfers();
    if (passed(load(request)))
      request = Request{};
    else
      all = false;
  }
  // No call waits here, so an error of NCCL's own would never be seen.
  if (!all && comm_ != nullptr) {
    async_state();
    if (now_s() > settings_.deadline_s) give_up("not over at the deadline: " + doing());
  }
  return all;
}

void NcclCommunicator::abandon(std::span<Request> requests) {
  transfers_.clear();
  deliveries_.clear();
  for (Request& request : requests)
    if (!is_ours(request))
      inner_.abandon({&request, 1});
    else if (request = Request{}; comm_ != nullptr)
      abort();
}

void NcclCommunicator::order_after(void* stream) {
  Event& event = free_events_.empty() ? free_events_.emplace_back() : free_events_.back();
  cuda::check(cudaEventRecord(event.get(), static_cast<cudaStream_t>(stream)), "cudaEventRecord");
  cuda::check(cudaStreamWaitEvent(stream_.get(), event.get(), 0), "cudaStreamWaitEvent");
}

void NcclCommunicator::order_before(void* stream, Request& request) {
  if (!is_ours(request)) return inner_.wait_all({&request, 1});
  launch_transfers();
  for (const Mark& mark : marks_)
    if (mark.number >= load(request)) {
      cuda::check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), mark.event.get(), 0),
                  "cudaStreamWaitEvent");
      return;
    }
}

// Collectives.

void NcclCommunicator::barrier() {
  collective({"a barrier", 4, -1, Call::barrier}, [&] {
    return nccl_.all_reduce(word_.data(), word_.data(), 1, ncclInt32, ncclSum, comm_, stream_.get());
  });
  if (in_batch_) wait_stream();
}

void NcclCommunicator::all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) {
  if (count == 0 || !mine(out)) return inner_.all_reduce(in, out, count, type, op);
  const auto t = nccl_type(type);
  const auto o = nccl_op(op);
  collective({"ncclAllReduce", count * size_of(type), -1, Call::all_reduce},
             [&] { return nccl_.all_reduce(in, out, count, t, o, comm_, stream_.get()); });
}

void NcclCommunicator::iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op,
                                   Request& request) {
  if (count == 0 || !mine(data)) return inner_.iall_reduce(data, count, type, op, request);
  const auto t = nccl_type(type);
  const auto o = nccl_op(op);
  begin_collective({"ncclAllReduce", count * size_of(type), -1, Call::all_reduce}, request,
                   [&] { return nccl_.all_reduce(data, data, count, t, o, comm_, stream_.get()); });
}

void NcclCommunicator::reduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                      ReduceOp op) {
  if (count == 0 || !mine(out)) return inner_.reduce_scatter(in, out, count, type, op);
  const auto t = nccl_type(type);
  const auto o = nccl_op(op);
  collective({"ncclReduceScatter", count * size_of(type), -1, Call::reduce_scatter},
             [&] { return nccl_.reduce_scatter(in, out, count, t, o, comm_, stream_.get()); });
}

void NcclCommunicator::ireduce_scatter(const void* in, void* out, std::size_t count, DataType type,
                                       ReduceOp op, Request& request) {
  if (count == 0 || !mine(out)) return inner_.ireduce_scatter(in, out, count, type, op, request);
  const auto t = nccl_type(type);
  const auto o = nccl_op(op);
  begin_collective({"ncclReduceScatter", count * size_of(type), -1, Call::reduce_scatter}, request,
                   [&] { return nccl_.reduce_scatter(in, out, count, t, o, comm_, stream_.get()); });
}

void NcclCommunicator::all_gather(const void* in, void* out, std::size_t bytes) {
  if (bytes == 0 || !mine(out)) return inner_.all_gather(in, out, bytes);
  collective({"ncclAllGather", bytes, -1, Call::all_gather},
             [&] { return nccl_.all_gather(in, out, bytes, ncclInt8, comm_, stream_.get()); });
}

/// NCCL has a call of its own only from 2.28 on; a group of sends and receives is what that does without copy
/// engines.
void NcclCommunicator::all_to_all(const void* in, void* out, std::size_t bytes) {
  if (bytes == 0 || !mine(out)) return inner_.all_to_all(in, out, bytes);
  collective({"all-to-all", bytes, -1, Call::all_to_all}, [&] {
    return group([&] {
      for (int peer = 0; peer < size(); ++peer) {
        const std::size_t offset = static_cast<std::size_t>(peer) * bytes;
        for (const ncclResult_t result :
             {nccl_.send(static_cast<const std::byte*>(in) + offset, bytes, ncclInt8, peer, comm_,
                         stream_.get()),
              nccl_.recv(static_cast<std::byte*>(out) + offset, bytes, ncclInt8, peer, comm_, stream_.get())})
          if (failed(result)) return result;
      }
      return ncclSuccess;
    });
  });
}

void NcclCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  if (bytes == 0 || !mine(data)) return inner_.broadcast(data, bytes, root);
  collective({"ncclBroadcast", bytes, root, Call::broadcast},
             [&] { return nccl_.broadcast(data, data, bytes, ncclInt8, root, comm_, stream_.get()); });
}

}  // namespace assay::cuda
