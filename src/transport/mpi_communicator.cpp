// SPDX-License-Identifier: Apache-2.0
#include "transport/mpi_communicator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <numeric>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "supervisor/heartbeat.hpp"
#include "transport/mpi_check.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

using mpi::ByteRange;
using mpi::check;
using mpi::mpi_op;
using mpi::mpi_type;
using supervisor::Call;
using supervisor::InCall;

/// Tag of the texts that the harness gathers. Callers use smaller ones; every MPI allows at least 32767.
constexpr int text_tag = 32767;

/// What a Request holds. A request that was never started is all zero, which no MPI guarantees to be
/// MPI_REQUEST_NULL.
struct Slot {
  MPI_Request request;
  std::uint8_t active;
  std::uint8_t collective;
};
static_assert(sizeof(Slot) <= sizeof(Request::storage) && alignof(Slot) <= 8);

Slot load(const Request& request) noexcept {
  Slot slot;
  std::memcpy(&slot, request.storage, sizeof slot);
  return slot;
}
void store(Request& request, const Slot& slot) noexcept { std::memcpy(request.storage, &slot, sizeof slot); }

void sleep_s(double seconds) noexcept {
  timespec wait{0, static_cast<long>(seconds * 1e9)};
  nanosleep(&wait, nullptr);
}

const std::byte* at(const void* base, std::size_t offset) noexcept {
  return static_cast<const std::byte*>(base) + offset;
}
std::byte* at(void* base, std::size_t offset) noexcept { return static_cast<std::byte*>(base) + offset; }

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(MPI_Comm comm, std::string path, std::size_t limit, supervisor::Heartbeat* heartbeat)
      : comm_(comm), limit_(limit), path_(std::move(path)) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    if (heartbeat != nullptr) heartbeat_ = heartbeat;
    world_ranks_ = mpi::world_ranks(comm_, size_);
  }
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) MPI_Comm_free(&comm_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int launch_rank(int peer) const noexcept override {
    return peer < 0 || peer >= size_
               ? supervisor::no_peer
               : world_ranks_[static_cast<std::size_t>(peer)];  // MPI says what is wrong
  }
  std::string_view transport() const noexcept override { return "mpi"; }
  std::string path() const override { return path_; }

  std::unique_ptr<Communicator> split(int color, int key) override {
    const InCall mark(*heartbeat_, Call::split);
    MPI_Comm part = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
    return part == MPI_COMM_NULL
               ? nullptr
               : mpi::make_communicator(part, path_, limit_,
                                        heartbeat_ == &own_heartbeat_ ? nullptr : heartbeat_);
  }

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    const InCall mark(*heartbeat_, Call::send, launch_rank(peer));
    if (look_) return wait_looking([&](Request& request) { isend(data, bytes, peer, tag, request); });
    const ByteRange range(bytes, limit_);
    check(MPI_Send(data, range.count(), range.type(), peer, tag, comm_), "MPI_Send");
  }
  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    const InCall mark(*heartbeat_, Call::receive, launch_rank(peer));
    if (look_) return wait_looking([&](Request& request) { irecv(data, bytes, peer, tag, request); });
    const ByteRange range(bytes, limit_);
    check(MPI_Recv(data, range.count(), range.type(), peer, tag, comm_, MPI_STATUS_IGNORE), "MPI_Recv");
  }
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    const ByteRange range(bytes, limit_);
    started(request, peer, "MPI_Isend", [&](MPI_Request* r) {
      return MPI_Isend(data, range.count(), range.type(), peer, tag, comm_, r);
    });
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    const ByteRange range(bytes, limit_);
    started(request, peer, "MPI_Irecv", [&](MPI_Request* r) {
      return MPI_Irecv(data, range.count(), range.type(), peer, tag, comm_, r);
    });
  }
  void wait_all(std::span<Request> requests) override;
  bool test_all(std::span<Request> requests) override;
  void while_waiting(const std::function<void()>& look) override { look_ = look; }
  void abandon(std::span<Request> requests) override;
  bool serialized() const noexcept override {
    int level = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED;
  }

  void barrier() override {
    const InCall mark(*heartbeat_, Call::barrier);
    check(MPI_Barrier(comm_), "MPI_Barrier");
  }
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override;
  void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) override;
  void reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                      ReduceOp op) override;
  void ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type, ReduceOp op,
                       Request& request) override;
  void all_gather(const void* in, void* out, std::size_t bytes_per_rank) override;
  void all_to_all(const void* in, void* out, std::size_t bytes_per_rank) override;
  void broadcast(void* data, std::size_t bytes, int root) override;

  void quiet_barrier() override;
  std::vector<std::string> gather_text(const std::string& mine, int root) override;
  std::vector<std::string> all_gather_text(const std::string& mine) override;
  std::string broadcast_text(const std::string& mine, int root) override;

 private:
  template <typename Call>
  void started(Request& request, int peer, const char* name, Call&& call) {
    Slot slot{MPI_REQUEST_NULL, 1, peer < 0};
    check(call(&slot.request), name);
    store(request, slot);
    waits_for_ = launch_rank(peer);
  }
  template <typename Start>
  void wait_looking(Start&& start) {
    Request request;
    start(request);
    wait_looking(std::span(&request, 1));
  }
  void wait_looking(std::span<Request> requests);

  MPI_Comm comm_;
  std::size_t limit_;
  std::string path_;
  int rank_ = 0, size_ = 1;
  supervisor::Heartbeat own_heartbeat_;  ///< without a supervisor
  supervisor::Heartbeat* heartbeat_ = &own_heartbeat_;
  std::vector<std::int32_t> world_ranks_;
  std::int32_t waits_for_ = supervisor::no_peer;  ///< of the latest non-blocking transfer
  std::function<void()> look_;
};

void MpiCommunicator::wait_all(std::span<Request> requests) {
  const InCall mark(*heartbeat_, Call::wait, waits_for_);
  if (look_) return wait_looking(requests);
  // In groups, so that no memory is allocated; MPI makes progress on all transfers whichever group it waits
  // for.
  constexpr std::size_t group = 64;
  std::array<MPI_Request, group> pending;
  for (std::size_t first = 0; first < requests.size(); first += group) {
    const auto part = requests.subspan(first, std::min(group, requests.size() - first));
    int n = 0;
    for (Request& request : part) {
      const Slot slot = load(request);
      if (slot.active != 0) pending[static_cast<std::size_t>(n++)] = slot.request;
      request = Request{};
    }
    check(MPI_Waitall(n, pending.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
}

void MpiCommunicator::wait_looking(std::span<Request> requests) {
  constexpr unsigned between = 64;  // what is waited for comes first
  for (unsigned tests = 1; !test_all(requests); ++tests) {
    if (tests % between != 0) continue;
    try {
      look_();
    } catch (...) {
      abandon(requests);
      throw;
    }
  }
}

void MpiCommunicator::abandon(std::span<Request> requests) {
  for (Request& request : requests) {
    Slot slot = load(request);
    if (slot.active == 0) continue;
    request = Request{};
    if (slot.collective != 0) continue;  // MPI forbids to cancel and to free it: it goes on
    MPI_Cancel(&slot.request);
    MPI_Request_free(&slot.request);
  }
}

bool MpiCommunicator::test_all(std::span<Request> requests) {
  bool all = true;
  for (Request& request : requests) {
    Slot slot = load(request);
    if (slot.active == 0) continue;
    int done = 0;
    check(MPI_Test(&slot.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) {
      request = Request{};
    } else {
      store(request, slot);
      all = false;
    }
  }
  return all;
}

void MpiCommunicator::iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op,
                                  Request& request) {
  if (count > limit_) return Communicator::iall_reduce(data, count, type, op, request);
  started(request, -1, "MPI_Iallreduce", [&](MPI_Request* r) {
    return MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), mpi_type(type), mpi_op(op), comm_, r);
  });
}

void MpiCommunicator::all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) {
  const InCall mark(*heartbeat_, Call::all_reduce);
  const std::size_t width = size_of(type);
  for (std::size_t first = 0; first < count; first += limit_) {
    const int n = static_cast<int>(std::min(limit_, count - first));
    const void* source = in == out ? MPI_IN_PLACE : at(in, first * width);
    check(MPI_Allreduce(source, at(out, first * width), n, mpi_type(type), mpi_op(op), comm_),
          "MPI_Allreduce");
  }
}

void MpiCommunicator::reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                                     ReduceOp op) {
  const InCall mark(*heartbeat_, Call::reduce_scatter);
  if (count_per_rank <= limit_) {
    check(MPI_Reduce_scatter_block(in, out, static_cast<int>(count_per_rank), mpi_type(type), mpi_op(op),
                                   comm_),
          "MPI_Reduce_scatter_block");
    return;
  }
  // A part of every rank's block is not contiguous, so each block is reduced to its owner piece by piece.
  const std::size_t width = size_of(type);
  for (int owner = 0; owner < size_; ++owner)
    for (std::size_t first = 0; first < count_per_rank; first += limit_) {
      const int n = static_cast<int>(std::min(limit_, count_per_rank - first));
      const std::size_t offset = static_cast<std::size_t>(owner) * count_per_rank + first;
      void* result = rank_ == owner ? at(out, first * width) : nullptr;
      check(MPI_Reduce(at(in, offset * width), result, n, mpi_type(type), mpi_op(op), owner, comm_),
            "MPI_Reduce");
    }
}

void MpiCommunicator::ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                                      ReduceOp op, Request& request) {
  if (count_per_rank > limit_)
    return Communicator::ireduce_scatter(in, out, count_per_rank, type, op, request);
  started(request, -1, "MPI_Ireduce_scatter_block", [&](MPI_Request* r) {
    return MPI_Ireduce_scatter_block(in, out, static_cast<int>(count_per_rank), mpi_type(type), mpi_op(op),
                                     comm_, r);
  });
}

void MpiCommunicator::all_gather(const void* in, void* out, std::size_t bytes_per_rank) {
  const InCall mark(*heartbeat_, Call::all_gather);
  const ByteRange range(bytes_per_rank, limit_);
  check(MPI_Allgather(in, range.count(), range.type(), out, range.count(), range.type(), comm_),
        "MPI_Allgather");
}

void MpiCommunicator::all_to_all(const void* in, void* out, std::size_t bytes_per_rank) {
  const InCall mark(*heartbeat_, Call::all_to_all);
  const ByteRange range(bytes_per_rank, limit_);
  check(MPI_Alltoall(in, range.count(), range.type(), out, range.count(), range.type(), comm_),
        "MPI_Alltoall");
}

void MpiCommunicator::broadcast(void* data, std::size_t bytes, int root) {
  const InCall mark(*heartbeat_, Call::broadcast);
  const ByteRange range(bytes, limit_);
  check(MPI_Bcast(data, range.count(), range.type(), root, comm_), "MPI_Bcast");
}

void MpiCommunicator::quiet_barrier() {
  const InCall mark(*heartbeat_, Call::barrier);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(comm_, &request), "MPI_Ibarrier");
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  // The sleep grows with the time waited, so that a short wait is not prolonged by much and a long one costs
  // no cycles.
  const double begin = now_s();
  while (done == 0) {
    sleep_s(std::clamp((now_s() - begin) / 8, 50e-6, 1e-3));
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
}

std::vector<std::string> MpiCommunicator::gather_text(const std::string& mine, int root) {
  const InCall mark(*heartbeat_, Call::texts);
  // Up a binomial tree: from every rank directly the root would need, over TCP, a connection to each of them.
  const int place = (rank_ - root + size_) % size_;  // below the root, whose place is 0
  const auto rank_at = [&](int at) { return static_cast<int>((std::int64_t{at} + root) % size_); };
  std::uint64_t length = mine.size();
  // Each text behind its length, of this place and the following ones.
  std::string joined(reinterpret_cast<const char*>(&length), sizeof length);
  joined += mine;
  for (std::int64_t step = 1; step < size_; step *= 2) {
    std::uint64_t bytes = joined.size();
    if ((place & step) != 0) {
      const int above = rank_at(place - static_cast<int>(step));
      send(&bytes, sizeof bytes, above, text_tag);
      send(joined.data(), bytes, above, text_tag);
      return {};
    }
    if (place + step >= size_) continue;
    const int below = rank_at(place + static_cast<int>(step));
    recv(&bytes, sizeof bytes, below, text_tag);
    joined.resize(joined.size() + bytes);
    recv(joined.data() + joined.size() - bytes, bytes, below, text_tag);
  }
  std::vector<std::string> texts(static_cast<std::size_t>(size_));
  std::size_t at = 0;
  for (int i = 0; i < size_; ++i) {
    std::memcpy(&length, joined.data() + at, sizeof length);
    texts[static_cast<std::size_t>(rank_at(i))] = joined.substr(at + sizeof length, length);
    at += sizeof length + length;
  }
  return texts;
}

std::vector<std::string> MpiCommunicator::all_gather_text(const std::string& mine) {
  const InCall mark(*heartbeat_, Call::texts);
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
  const std::uint64_t length = mine.size();
  check(MPI_Allgather(&length, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, comm_), "MPI_Allgather");
  std::string joined;
  for (const std::string& text : gather_text(mine, 0)) joined += text;
  joined.resize(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
  broadcast(joined.data(), joined.size(), 0);
  std::vector<std::string> texts;
  std::size_t offset = 0;
  for (const std::uint64_t n : lengths) {
    texts.push_back(joined.substr(offset, n));
    offset += n;
  }
  return texts;
}

std::string MpiCommunicator::broadcast_text(const std::string& mine, int root) {
  const InCall mark(*heartbeat_, Call::texts);
  std::uint64_t length = mine.size();
  check(MPI_Bcast(&length, 1, MPI_UINT64_T, root, comm_), "MPI_Bcast");
  std::string text = rank_ == root ? mine : std::string(length, '\0');
  broadcast(text.data(), text.size(), root);
  return text;
}

}  // namespace

namespace mpi {

std::unique_ptr<Communicator> make_communicator(MPI_Comm comm, const std::string& path, std::size_t limit,
                                                supervisor::Heartbeat* heartbeat) {
  return std::make_unique<MpiCommunicator>(comm, path, limit, heartbeat);
}

std::vector<std::int32_t> world_ranks(MPI_Comm comm, int size) {
  std::vector<int> own(static_cast<std::size_t>(size)), world(own.size());
  std::iota(own.begin(), own.end(), 0);
  MPI_Group part = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  check(MPI_Comm_group(comm, &part), "MPI_Comm_group");
  check(MPI_Comm_group(MPI_COMM_WORLD, &all), "MPI_Comm_group");
  check(MPI_Group_translate_ranks(part, size, own.data(), all, world.data()), "MPI_Group_translate_ranks");
  MPI_Group_free(&part);
  MPI_Group_free(&all);
  return {world.begin(), world.end()};
}

}  // namespace mpi
}  // namespace assay
