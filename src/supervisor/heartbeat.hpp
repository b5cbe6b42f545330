// SPDX-License-Identifier: Apache-2.0
// Where a rank is, on one page that the rank writes with plain stores and its supervisor reads: no call, no
// lock, and still readable when the rank hangs or is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace assay::supervisor {

enum class Phase : std::uint32_t { launch, mpi_init, discovery, memory, suites, waiting, running, ending };
inline constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::ending) + 1;
const char* to_string(Phase phase) noexcept;

/// The communicator call of a rank, or its work on files.
enum class Call : std::uint32_t {
  none,
  send,
  receive,
  wait,
  barrier,
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  split,
  set_up,  ///< of a communicator by a library that tells no progress
  texts,
  files  ///< no call: it reads and writes in the directory of its case
};
const char* to_string(Call call) noexcept;
/// Whether the rank waits for no other rank.
constexpr bool may_compute(Call call) noexcept { return call == Call::none || call == Call::files; }

inline constexpr std::int32_t no_peer = -1;

struct Heartbeat {
  /// Set by the supervisor once it knows the collector's address and key, before it connects.
  std::atomic<bool> address_known{false};
  std::atomic<Phase> phase{Phase::launch};
  std::atomic<std::int32_t> case_index{-1};
  std::atomic<std::uint64_t> iteration{0};  ///< timed batches of this case so far
  std::atomic<std::uint64_t> calls{0};      ///< communicator calls ended so far
  std::atomic<Call> call{Call::none};
  std::atomic<std::int32_t> peer{no_peer};  ///< world rank that the call waits for; none for a group

  // The stack of the worker's main thread, written by its signal handler when the supervisor asks.
  static constexpr std::size_t max_frames = 48;
  std::array<std::atomic<std::uintptr_t>, max_frames> frames{};
  std::atomic<std::int32_t> frame_count{-1};
};

/// A copy of the page as it travels between supervisors, with the supervisor's own data.
struct Snapshot {
  Phase phase = Phase::launch;
  std::int32_t case_index = -1;
  std::uint64_t iteration = 0;
  std::uint64_t calls = 0;
  Call call = Call::none;
  std::int32_t peer = no_peer;
  /// Since anything on the page changed, less the time in which the worker was to compute and had no core:
  /// what ranks that share a core make slow is no hang.
  double idle_s = 0;
  char process_state =
      '?';  ///< of the worker, from /proc: R running, S sleeping, D in the kernel, T stopped, Z dead
};
Snapshot read(const Heartbeat& heartbeat) noexcept;
/// True when `b` shows progress over `a`.
bool moved(const Snapshot& a, const Snapshot& b) noexcept;
std::string to_text(const Snapshot& snapshot);  ///< bytes, between equal builds
bool from_text(const std::string& text, Snapshot& out) noexcept;

/// Marks a call on the page during the lifetime of this object.
class InCall {
 public:
  InCall(Heartbeat& heartbeat, Call call, std::int32_t peer = no_peer) noexcept
      : heartbeat_(heartbeat), outer_(heartbeat.call.load(std::memory_order_relaxed)) {
    heartbeat_.peer.store(peer, std::memory_order_relaxed);
    heartbeat_.call.store(call, std::memory_order_relaxed);
  }
  ~InCall() {
    heartbeat_.call.store(outer_, std::memory_order_relaxed);
    heartbeat_.calls.store(heartbeat_.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  Heartbeat& heartbeat_;
  Call outer_;  ///< calls may be made of others
};

/// One Heartbeat in memory that stays shared across fork().
class SharedHeartbeat {
 public:
  SharedHeartbeat();  ///< Throws Error(resource).
  ~SharedHeartbeat();
  SharedHeartbeat(const SharedHeartbeat&) = delete;
  SharedHeartbeat& operator=(const SharedHeartbeat&) = delete;
  Heartbeat& operator*() const noexcept { return *heartbeat_; }
  Heartbeat* operator->() const noexcept { return heartbeat_; }

 private:
  Heartbeat* heartbeat_;
};

}  // namespace assay::supervisor
