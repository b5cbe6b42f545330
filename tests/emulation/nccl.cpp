// SPDX-License-Identifier: Apache-2.0
// NCCL between processes of one host. Operations are queued on streams and meet the other ranks' when
// somebody waits. A communicator that does not block starts nothing before somebody has polled it, and
// refuses the next operation until then.
#include "nccl.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>

#include "nccl_machines.hpp"

namespace emulation {
namespace {

struct Grouped {
  Shared state;
  cudaStream_t stream;
  std::vector<Flow> flows;
};
struct Group {
  int depth = 0;
  std::vector<Grouped> parts;
};
Group& group() {
  static Group g;
  return g;
}

}  // namespace
}  // namespace emulation

struct ncclComm {
  explicit ncclComm(emulation::Shared of) : state(std::move(of)) { ++alive; }
  ~ncclComm() { --alive; }
  ncclComm(const ncclComm&) = delete;
  ncclComm& operator=(const ncclComm&) = delete;
  emulation::Shared state;
  static inline std::atomic<long> alive{0};
};

namespace emulation {

State& state_of(ncclComm_t comm) { return *comm->state; }

namespace {

std::atomic<unsigned long> threads{0};

bool breaks(const char* what) {
  const char* fault = std::getenv("ASSAY_EMULATED_NCCL");
  return fault != nullptr && std::strcmp(fault, what) == 0;
}

/// Variables of the environment come before what the caller asks for.
ncclConfig_t with_environment(ncclConfig_t config) {
  const auto replace = [](const char* name, int& value) {
    if (const char* text = std::getenv(name); text != nullptr && *text != '\0') value = std::atoi(text);
  };
  replace("NCCL_COMM_BLOCKING", config.blocking);
  replace("NCCL_COMM_SPLIT_SHARE_RESOURCES", config.splitShare);
  return config;
}

/// What is pending is over: for good, or because the communicator is aborted.
void end_pending(State& s) {
  s.pending = nullptr;
  if (const auto at_end = std::exchange(s.at_end, nullptr)) at_end();
}

/// Another thread may abort the communicator meanwhile. Begins what a call asks for: at once, or when a
/// communicator that does not block is polled.
ncclResult_t begin(Shared s, std::function<ncclResult_t()> step) {
  if (s->error != ncclSuccess) return s->error;
  if (s->aborted || s->pending) return ncclInvalidUsage;
  if (!s->blocking) {
    ++threads;
    s->pending = std::move(step);
    return ncclInProgress;
  }
  ncclResult_t result = ncclInProgress;
  const bool stuck = breaks("stuck");
  while (stuck || (result = step()) == ncclInProgress) {
    if (s->aborted) return ncclInternalError;
    std::this_thread::yield();
  }
  return s->error = result;
}

template <typename Machine>
ncclResult_t queue(Shared s, cudaStream_t stream, Machine machine) {
  if constexpr (std::is_same_v<Machine, Collective>) count_registered(*s, machine.out);
  return begin(s, [s, stream, machine = std::move(machine)] {
    enqueue_made(stream, [s, machine] {
      return [s, work = std::make_shared<Machine>(machine)] { return work->advance(*s); };
    });
    return ncclSuccess;
  });
}

/// Joins the rendezvous of a name; over when all ranks are there and none shares a GPU.
ncclResult_t join(const Shared& s) {
  if (s->segment == nullptr) {
    s->segment = std::make_unique<Segment>(s->name);
    int device = 0;
    cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
      return ncclUnhandledCudaError;
    auto& mine = (*s->segment)->gpu[static_cast<std::size_t>(s->rank)];
    std::memcpy(mine.data(), properties.uuid.bytes, sizeof properties.uuid.bytes);
    (*s->segment)->joined.fetch_add(1);
  }
  Rendezvous& m = **s->segment;
  if (m.joined.load() < s->ranks) return ncclInProgress;
  if (s->rank == 0) s->segment->unlink();
  for (int a = 0; a < s->ranks; ++a)
    for (int b = 0; b < a; ++b)
      if (m.gpu[static_cast<std::size_t>(a)] == m.gpu[static_cast<std::size_t>(b)]) return ncclInvalidUsage;
  return ncclSuccess;
}

ncclResult_t transfer(bool send, void* data, std::size_t bytes, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (peer < 0 || peer >= comm->state->ranks) return ncclInvalidArgument;
  if (breaks("refuse")) return ncclInvalidArgument;
  Group& g = group();
  const bool alone = g.depth == 0;
  if (alone) ++g.depth;
  auto part = std::find_if(g.parts.begin(), g.parts.end(),
                           [&](const Grouped& p) { return p.state == comm->state && p.stream == stream; });
  if (part == g.parts.end()) part = g.parts.insert(part, {comm->state, stream, {}});
  part->flows.push_back({send, static_cast<std::byte*>(data), bytes, static_cast<std::size_t>(peer)});
  return alone ? ncclGroupEnd() : ncclSuccess;
}

}  // namespace
}  // namespace emulation

using namespace emulation;

unsigned long emulatedNcclThreads() { return threads; }
long emulatedNcclCommunicators() { return ncclComm::alive; }
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/assay-nccl-%d-%08x%08x", static_cast<int>(getpid()),
                random(), random());
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ranks > most_ranks || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const auto s = std::make_shared<State>();
  s->name = id.internal;
  s->ranks = ranks;
  s->rank = rank;
  s->blocking = with_environment(*config).blocking != 0;
  const ncclComm_t made = *comm = new ncclComm(s);
  s->at_end = [comm, made] { *comm = made; };
  const ncclResult_t result = begin(s, [s] { return breaks("no-init") ? ncclInProgress : join(s); });
  if (!s->pending) end_pending(*s);
  return result;
}
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t* config) {
  const Shared parent = comm->state;
  if (parent->error != ncclSuccess) return parent->error;
  if (parent->aborted || parent->pending) return ncclInvalidUsage;
  const auto child = color == NCCL_SPLIT_NOCOLOR ? nullptr : std::make_shared<State>();
  const ncclConfig_t wanted = with_environment(*config);
  if (child != nullptr) child->blocking = wanted.blocking != 0;
  if (child != nullptr && wanted.splitShare != 0) child->shares = parent;
  *out = nullptr;
  parent->at_end = [out, child] { *out = child == nullptr ? nullptr : new ncclComm(child); };
  const auto me = static_cast<std::size_t>(parent->rank);
  Rendezvous& m = **parent->segment;
  m.color[me] = color;
  m.key[me] = key;
  m.split[me] = ++parent->splits;
  const auto join_child = [child] { return child == nullptr ? ncclSuccess : join(child); };
  const ncclResult_t result = begin(parent, [parent, child, color, join_child, &m] {
    if (breaks("no-split")) return ncclInProgress;
    if (breaks("failed-split")) return ncclSystemError;
    for (int r = 0; r < parent->ranks; ++r)
      if (m.split[static_cast<std::size_t>(r)].load() < parent->splits) return ncclInProgress;
    if (child == nullptr || child->segment != nullptr) return join_child();
    std::vector<std::pair<int, int>> members;
    for (int r = 0; r < parent->ranks; ++r)
      if (m.color[static_cast<std::size_t>(r)] == color)
        members.emplace_back(m.key[static_cast<std::size_t>(r)], r);
    std::sort(members.begin(), members.end());
    child->ranks = static_cast<int>(members.size());
    for (std::size_t i = 0; i < members.size(); ++i)
      if (members[i].second == parent->rank) child->rank = static_cast<int>(i);
    child->name = parent->name + "-" + std::to_string(parent->splits) + "." + std::to_string(color);
    return join_child();
  });
  if (!parent->pending) end_pending(*parent);
  return result;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return begin(comm->state, [] { return ncclSuccess; });
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->state->aborted = true;
  if (comm->state->pending) end_pending(*comm->state);
  if (comm->state->shares != nullptr) comm->state->shares->aborted = true;
  if (comm->state->segment != nullptr && comm->state->rank == 0) comm->state->segment->unlink();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  State& s = *comm->state;
  if (s.pending) {
    const ncclResult_t result = s.pending();
    if (result != ncclInProgress) {
      if (s.error == ncclSuccess) s.error = result;
      end_pending(s);
    }
  }
  *error = s.error != ncclSuccess ? s.error : s.pending ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInProgress: return "in progress";
    default: return "an error of the emulation";
  }
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = n * width(type);
  return queue(comm->state, stream,
               Collective{Kind::all_reduce, static_cast<const std::byte*>(in), static_cast<std::byte*>(out),
                          bytes, bytes, type, op});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = n * width(type), all = bytes * static_cast<std::size_t>(comm->state->ranks);
  return queue(comm->state, stream,
               Collective{Kind::reduce_scatter, static_cast<const std::byte*>(in),
                          static_cast<std::byte*>(out), all, bytes, type, op});
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t n, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t bytes = n * width(type), all = bytes * static_cast<std::size_t>(comm->state->ranks);
  return queue(comm->state, stream,
               Collective{Kind::all_gather, static_cast<const std::byte*>(in), static_cast<std::byte*>(out),
                          bytes, all});
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t n, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = n * width(type);
  return queue(comm->state, stream,
               Collective{Kind::broadcast, static_cast<const std::byte*>(in), static_cast<std::byte*>(out),
                          bytes, bytes, ncclInt8, ncclSum, root});
}
ncclResult_t ncclSend(const void* data, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer(true, const_cast<void*>(data), n * width(type), peer, comm, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer(false, data, n * width(type), peer, comm, stream);
}
ncclResult_t ncclGroupStart() {
  ++group().depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  Group& g = group();
  if (--g.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (Grouped& part : std::exchange(g.parts, {}))
    if (const ncclResult_t r = queue(part.state, part.stream, Transfers{std::move(part.flows)});
        r != ncclSuccess)
      result = r;
  return result;
}
