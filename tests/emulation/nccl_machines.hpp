// SPDX-License-Identifier: Apache-2.0
// What the operations of the emulated NCCL do. Each is a small machine that goes as far as it can without
// waiting, and is asked again.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nccl.h"
#include "nccl_segment.hpp"

namespace emulation {

struct State {
  std::string name;
  std::unique_ptr<Segment> segment;
  int ranks = 0, rank = 0;
  bool blocking = true, aborted = false;
  std::shared_ptr<State>
      shares;  ///< whose resources it uses too (splitShare): aborting the one aborts the other
  ncclResult_t error = ncclSuccess;
  std::function<ncclResult_t()> pending;  ///< what a call has begun: polled until it is over
  /// What the thread of `pending` does at its end, also when it fails or is aborted: stores a communicator.
  std::function<void()> at_end;
  std::uint64_t rounds = 0, splits = 0;  ///< of collectives so far; parts so far
  std::array<std::uint64_t, most_ranks> sent{}, received{};
  struct Registration {
    std::size_t bytes = 0;
    bool window = false;
  };
  std::map<void*, Registration> registered;
};
using Shared = std::shared_ptr<State>;

State& state_of(ncclComm_t comm);
/// Counts an operation on `data` if it is registered.
void count_registered(const State& s, const void* data);

inline std::size_t width(ncclDataType_t type) {
  switch (type) {
    case ncclInt8: return 1;
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclFloat32: return 4;
    case ncclUint64:
    case ncclFloat64: return 8;
  }
  return 0;
}

template <typename T>
T combined(T a, T b, ncclRedOp_t op) {
  switch (op) {
    case ncclSum: return static_cast<T>(a + b);
    case ncclProd: return static_cast<T>(a * b);
    case ncclMax: return std::max(a, b);
    case ncclMin: return std::min(a, b);
  }
  return a;
}

/// Accumulates in T; `load` and `store` are for values that are kept in fewer bits.
template <typename Stored, typename T, typename Load, typename Store>
void reduce_as(const Rendezvous& m, int ranks, std::size_t offset, void* out, std::size_t count,
               ncclRedOp_t op, Load&& load, Store&& store) {
  for (std::size_t i = 0; i < count; ++i) {
    T sum{};
    for (int r = 0; r < ranks; ++r) {
      Stored value;
      std::memcpy(&value, m.slots[static_cast<std::size_t>(r)].data() + offset + i * sizeof value,
                  sizeof value);
      sum = r == 0 ? load(value) : combined(sum, load(value), op);
    }
    const Stored result = store(sum);
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof result, &result, sizeof result);
  }
}

template <typename T>
void reduce_plain(const Rendezvous& m, int ranks, std::size_t offset, void* out, std::size_t bytes,
                  ncclRedOp_t op) {
  const auto same = [](T x) { return x; };
  reduce_as<T, T>(m, ranks, offset, out, bytes / sizeof(T), op, same, same);
}

inline void reduce(const Rendezvous& m, int ranks, std::size_t offset, void* out, std::size_t bytes,
                   ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclInt8: return reduce_plain<signed char>(m, ranks, offset, out, bytes, op);
    case ncclInt32: return reduce_plain<std::int32_t>(m, ranks, offset, out, bytes, op);
    case ncclUint64: return reduce_plain<std::uint64_t>(m, ranks, offset, out, bytes, op);
    case ncclFloat32: return reduce_plain<float>(m, ranks, offset, out, bytes, op);
    case ncclFloat64: return reduce_plain<double>(m, ranks, offset, out, bytes, op);
    case ncclBfloat16: break;
  }
  reduce_as<std::uint16_t, float>(
      m, ranks, offset, out, bytes / 2, op,
      [](std::uint16_t x) { return __uint_as_float(static_cast<unsigned>(x) << 16); },
      [](float x) {
        const unsigned bits = __float_as_uint(x);
        return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
      });
}

/// The fault of an operation, from its first turn on.
struct Broken {
  NcclFault fault;
  bool asked = false;
  bool hangs(const State& s, std::size_t bytes) {
    if (!asked) {
      asked = true;
      fault = nccl_fault(s.rank, bytes);
      if (fault.kind == NcclFault::slow)
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(fault.ms));
    }
    return fault.kind == NcclFault::hang;
  }
  void corrupt(void* result, std::size_t bytes) const {
    if (fault.kind == NcclFault::corrupt && 4 * fault.element < bytes)
      static_cast<std::byte*>(result)[4 * fault.element] ^= std::byte{0x10};
  }
};

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast };

/// `bytes`: of what a rank puts in, all chunks together.
struct Collective {
  Kind kind;
  const std::byte* in;
  std::byte* out;
  std::size_t bytes, result_bytes;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t op = ncclSum;
  int root = 0;
  std::size_t at = 0;
  bool has_put = false;
  Broken broken = {};

  bool advance(State& s) {
    if (s.aborted) return true;
    if (broken.hangs(s, bytes)) return false;
    Rendezvous& m = **s.segment;
    const auto me = static_cast<std::size_t>(s.rank);
    while (at < bytes) {
      const std::size_t n = std::min(chunk, bytes - at);
      if (!has_put) {
        if (!all(m.taken, s, s.rounds)) return false;
        ++s.rounds;
        if (kind != Kind::broadcast || s.rank == root) std::memcpy(m.slots[me].data(), in + at, n);
        m.wanted_bytes[me] = bytes;
        m.put[me] = s.rounds;
        has_put = true;
      }
      if (!all(m.put, s, s.rounds)) return false;
      for (int r = 0; r < s.ranks; ++r)
        if (m.wanted_bytes[static_cast<std::size_t>(r)] != bytes) s.error = ncclInvalidUsage;
      take(m, s, n);
      m.taken[me] = s.rounds;
      has_put = false;
      at += n;
    }
    broken.corrupt(out, result_bytes);
    return true;
  }

 private:
  static bool all(const Rendezvous::PerRank<std::atomic<std::uint64_t>>& counters, const State& s,
                  std::uint64_t least) {
    return std::all_of(counters.begin(), counters.begin() + s.ranks,
                       [&](const auto& c) { return c.load() >= least; });
  }
  void take(const Rendezvous& m, const State& s, std::size_t n) const {
    if (kind == Kind::all_reduce) reduce(m, s.ranks, 0, out + at, n, type, op);
    if (kind == Kind::broadcast) std::memcpy(out + at, m.slots[static_cast<std::size_t>(root)].data(), n);
    if (kind == Kind::all_gather)
      for (int r = 0; r < s.ranks; ++r)
        std::memcpy(out + static_cast<std::size_t>(r) * bytes + at,
                    m.slots[static_cast<std::size_t>(r)].data(), n);
    if (kind != Kind::reduce_scatter) return;
    const std::size_t first = static_cast<std::size_t>(s.rank) * result_bytes, end = first + result_bytes;
    const std::size_t from = std::max(first, at), to = std::min(end, at + n);
    if (from < to) reduce(m, s.ranks, from - at, out + (from - first), to - from, type, op);
  }
};

struct Flow {
  bool send;
  std::byte* data;
  std::size_t bytes;
  std::size_t peer;
  std::size_t at = 0;
};

/// All go on together; two with the same partner in the same direction one after the other. A send ends when
/// its last byte was taken.
struct Transfers {
  std::vector<Flow> flows;
  Broken broken = {};

  bool advance(State& s) {
    if (s.aborted) return true;
    std::size_t bytes = 0;
    for (const Flow& f : flows) bytes += f.bytes;
    if (broken.hangs(s, bytes)) return false;
    for (bool moved = true, open = true; moved;) {
      moved = open = false;
      std::array<bool, most_ranks> busy_out{}, busy_in{};
      for (Flow& f : flows) {
        bool& busy = f.send ? busy_out[f.peer] : busy_in[f.peer];
        if (busy || ended(f, s)) continue;
        busy = open = true;
        moved = move(f, s) || moved;
      }
      if (open) continue;
      const auto arrived = std::find_if(flows.begin(), flows.end(), [](const Flow& f) { return !f.send; });
      if (arrived != flows.end()) broken.corrupt(arrived->data, arrived->bytes);
      return true;
    }
    return false;
  }

 private:
  static bool ended(const Flow& f, const State& s) {
    if (f.at < f.bytes) return false;
    const auto me = static_cast<std::size_t>(s.rank);
    return !f.send || (*s.segment)->received[me][f.peer] == s.sent[f.peer];
  }
  static bool move(Flow& f, State& s) {
    Rendezvous& m = **s.segment;
    const auto me = static_cast<std::size_t>(s.rank);
    const std::size_t n = std::min(chunk, f.bytes - f.at);
    if (n == 0) return false;
    if (f.send) {
      if (m.received[me][f.peer] != s.sent[f.peer]) return false;
      std::memcpy(m.pipes[me][f.peer].data(), f.data + f.at, n);
      m.sent[me][f.peer] = ++s.sent[f.peer];
    } else {
      if (m.sent[f.peer][me] == s.received[f.peer]) return false;
      std::memcpy(f.data + f.at, m.pipes[f.peer][me].data(), n);
      m.received[f.peer][me] = ++s.received[f.peer];
    }
    f.at += n;
    return true;
  }
};

}  // namespace emulation
