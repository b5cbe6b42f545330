// SPDX-License-Identifier: Apache-2.0
// What two ranks do to measure the link between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "measure/sampler.hpp"
#include "measure/sizing.hpp"
#include "transport/communicator.hpp"
#include "transport/ucx_communicator.hpp"
#include "workload/payload_buffer.hpp"

namespace assay::workload {

/// put, get: one-sided writes and reads, by the leader, of the other's memory. put_bi, get_bi: by both at
/// once, each of the other's. chase: dependent loads of the leader in the other's memory.
enum class Mode { latency, uni, bi, rate, put, get, put_bi, get_bi, chase };

/// Tags of the messages of a pair. Only payload messages carry data that is checked; the others keep the two
/// in step.
inline constexpr int control_tag = 201, ready_tag = 202, ack_tag = 204, end_tag = 205;

/// One batch: `repetitions` messages of `bytes` each way (latency, bi, put_bi, get_bi) or one way (all
/// others); in chase that many walks through `bytes`. A pair that is too slow for it does with less: see
/// Sizing.
struct Shape {
  Mode mode = Mode::latency;
  std::size_t bytes = 8;
  std::uint64_t repetitions = 20;  ///< k
  std::size_t slots = 20;          ///< buffers a direction rotates through, >= repetitions

  bool both_ways() const noexcept { return mode == Mode::bi || mode == Mode::put_bi || mode == Mode::get_bi; }
  bool one_way() const noexcept { return mode != Mode::latency && !both_ways(); }
  bool one_sided() const noexcept { return mode == Mode::put || mode == Mode::get || mode == Mode::chase; }
  std::size_t slot_bytes() const noexcept { return (bytes + 63) / 64 * 64; }
  /// One way a rank sends and receives in turns, never both, so the two directions share the slots.
  std::size_t arena_bytes() const noexcept { return slot_bytes() * slots * (one_way() ? 1 : 2); }
};

struct Limits {
  std::size_t samples = 20;       ///< per direction
  std::size_t blocks = 3;         ///< the directions alternate this often
  std::uint64_t repetitions = 0;  ///< of a batch at most; 0: those of the shape
  double seconds =
      0.5;  ///< for both directions together; at least one sample each is taken whatever this says
  double interval_s = 0;  ///< between the starts of two samples at least
  double deadline_s = 0;  ///< now_s() after which no sample is started
};

/// The samples of the direction in which this rank led.
struct Series {
  std::vector<double> batch_s, start_s;  ///< seconds of a batch, and now_s() at its start
  std::vector<std::int32_t> block;
  Portion
      batch;  ///< what each of them held: as wanted, or what a slow pair could end in its share of the time
  double payload = 0;  ///< bytes of messages this rank sent, in warm-up and as the follower too
};

/// A message that did not arrive as it was sent.
struct PayloadError {
  int source = -1;
  std::uint64_t iteration = 0;
  std::uint64_t count = 0;                                             ///< wrong 8-byte words
  std::uint64_t byte_index = 0, expected = 0, actual = 0, reread = 0;  ///< of the first one
  double t = 0;
};

/// A message of `source` that lies at an offset of the buffer; nothing where all of it is right.
std::optional<PayloadError> check_payload(const PayloadBuffer& buffer, kernels::PayloadKey key,
                                          std::size_t at, std::size_t bytes, int source,
                                          std::uint64_t iteration);

struct Times {
  double warmup_s = 0, timed_s = 0, verify_s = 0;
};

/// Both ranks of a pair make one and call `run`, with `first` true on one of them. Every message is written
/// to a slot of its own before the clock starts and checked after it stopped: word i of message n is a
/// function of (key, source, destination, n, i). The leader of a direction takes the time and tells the other
/// rank by a control message whether to go on and with how much, so that no other rank takes part.
/// A direction begins with one small message and grows from there, so that a link which is slow by any factor
/// keeps its share of the time.
class Exchange {
 public:
  /// `fault` is null but in runs with faults made on purpose. `remote` is the way to the others' arenas, for
  /// one-sided modes; where there is none they take turns in sending what would have been written or read,
  /// but for chase, which needs it.
  Exchange(Communicator& comm, const PayloadBuffer& arena, std::uint64_t key, const Shape& shape,
           TimedFault fault = {}, RemoteMemory* remote = nullptr);

  /// How a run on devices ended for one of the two.
  enum class End : std::uint64_t { unknown, well, gave_up, device_failed };
  /// Between devices, an error is thrown in this run and in all that follow, and the other end learns of it:
  /// its series is empty then.
  Series run(int peer, bool first, const Limits& limits);
  End peer_end() const noexcept { return peer_end_; }

  const std::vector<PayloadError>& wrong() const noexcept { return wrong_; }
  const Times& times() const noexcept { return times_; }

 private:
  struct Control {
    enum Go : std::uint64_t { stop, sample, warm_up };
    std::uint64_t go = stop;
    std::uint64_t iteration = 0;  ///< of the first message of the batch
    std::uint64_t bytes = 0, repetitions = 0;
  };

  bool peer_failed() const noexcept { return peer_end_ >= End::gave_up; }
  void keep_failure() noexcept;
  Series take_turns(int peer, bool first, const Limits& limits);
  void lead(int peer, const Limits& limits, std::int32_t block, double end_s, Series& series);
  void climb(int peer, const Limits& limits, Series& series);
  void follow(int peer);
  double lead_batch(int peer, Control::Go go, double& start_s);
  void follow_batch(int peer, const Control& control);
  double lead_one_sided(int peer, const Control& control, double& start_s);
  void follow_one_sided(int peer, const Control& control);
  /// Both write to or read from the other's memory at once.
  bool reaches_both_ways() const noexcept { return remote_ != nullptr && shape_.both_ways(); }
  void reach(int peer, std::uint64_t iteration);
  double walk(int peer, std::uint64_t iteration);
  void make_chains(int peer, std::uint64_t iteration);
  void move_by_messages(int peer, std::uint64_t iteration, bool sends, bool leads);
  void apply_injected_delay(double begin_s, std::uint64_t go) const;
  void post_receives(int peer, std::uint64_t iteration);
  void start_sends(int peer, std::uint64_t iteration);
  /// Writes the messages of a batch, each of which is then sent once.
  void fill(int peer, std::uint64_t iteration);
  void verify(int peer, std::uint64_t iteration);
  std::span<Request> in_use() noexcept;
  std::byte* send_slot(std::uint64_t iteration) noexcept;
  std::byte* recv_slot(std::uint64_t iteration) noexcept;

  Communicator& comm_;
  PayloadBuffer arena_;
  std::uint64_t key_;
  Shape shape_;
  TimedFault fault_;
  RemoteMemory* remote_;
  std::vector<Request> requests_;  ///< receives, then sends
  std::uint64_t next_iteration_ = 0;
  Portion batch_;    ///< of the batch on its way
  Portion led_;      ///< of those that this rank leads
  double sent_ = 0;  ///< bytes
  std::vector<PayloadError> wrong_;
  Times times_;
  std::exception_ptr failure_;  ///< of this rank
  End end_ = End::well, peer_end_ = End::unknown;
};

}  // namespace assay::workload
