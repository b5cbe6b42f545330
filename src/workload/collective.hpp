// SPDX-License-Identifier: Apache-2.0
// One collective operation on rotating slots of exact data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "transport/communicator.hpp"
#include "workload/exact.hpp"

namespace assay::workload {

enum class Op { all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };
inline constexpr Op all_operations[] = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::all_to_all,
                                        Op::broadcast};

/// Bus bandwidth over algorithm bandwidth, as nccl-tests defines it: 2(n-1)/n for all-reduce, (n-1)/n for
/// reduce-scatter, all-gather and all-to-all, 1 for broadcast.
double bus_factor(Op operation, int ranks) noexcept;

/// Whether the result of an operation can replace its input; a broadcast always does so.
bool has_in_place_form(Op operation) noexcept;

/// Bytes of one slot for a size, for communicators of up to `ranks` ranks: input and output, or in place one
/// for both.
std::size_t slot_bytes(Op operation, std::size_t bytes, int ranks, bool in_place = false) noexcept;

/// `bytes` rounded to whole elements per rank: what counts for bandwidth.
std::size_t counted_bytes(Op operation, std::size_t bytes, int ranks) noexcept;

struct WrongResults {
  ExactErrors errors;
  std::uint32_t reread = 0;
};

/// How the operations of a run work on their slots and are started.
struct CollectiveMode {
  /// The result replaces the input (of a rank's own share in reduce-scatter and all-gather). A run repeats at
  /// most once per slot, because a second time would add up sums.
  bool in_place = false;
  /// A run is recorded by prepare(), and run() starts the record (Communicator::device_collectives).
  bool recorded = false;
};

/// `bytes` is the size as nccl-tests counts it: the whole vector, of which a rank holds 1/n in
/// reduce-scatter, all-gather and all-to-all. Slots rotate: repetition i works on slot i modulo their number,
/// and the next run goes on where the last one stopped.
class Collective {
 public:
  /// Throws Error(internal) when `arena` cannot hold `slots` slots. `arena` is memory of `device`; null: of
  /// the host.
  Collective(Communicator& comm, Op operation, std::size_t bytes, std::span<std::byte> arena,
             std::size_t slots, std::uint64_t seed, Device* device = nullptr, CollectiveMode mode = {});

  /// New inputs for the next run of `repetitions`.
  void prepare(std::uint64_t repetitions);
  /// Untimed, after prepare(): small operations cost a few hundred nanoseconds, of which the first call after
  /// other work (data, checks) would be a tenth for cold code. Large ones are left alone. What it leaves in
  /// the slot is overwritten.
  void prime();
  void run(std::uint64_t repetitions);
  /// Checks the last result in every slot that the last run wrote.
  void verify();
  /// For faults made on purpose: gets every result before it is checked.
  void set_injection_point(std::function<void(std::span<float>)> fault) { fault_ = std::move(fault); }

  /// Bytes that count for bandwidth: `bytes` rounded to whole elements per rank.
  std::size_t counted_bytes() const noexcept { return whole_ * sizeof(float); }
  const std::vector<WrongResults>& wrong() const noexcept { return wrong_; }
  /// The result in a slot, in the memory of the device, for the detection self-test.
  std::span<float> result(std::size_t slot) noexcept { return {output(slot), output_count()}; }
  ExactErrors check(std::size_t slot);

 private:
  float* input(std::size_t slot) noexcept;
  float* output(std::size_t slot) noexcept;
  void fill_slot(std::size_t slot);
  void spoil(std::size_t slot);
  void call_all(std::uint64_t repetitions);
  void record(std::uint64_t repetitions);
  std::size_t input_count() const noexcept;
  std::size_t output_count() const noexcept;
  ExactValues values(std::size_t slot) const noexcept;
  void call(std::size_t slot);
  void fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count);
  ExactErrors compare(const ExactLine& line, std::uint64_t first, const float* data, std::size_t count);

  Communicator& comm_;
  Op operation_;
  std::size_t share_;  ///< elements per rank (all of them for all-reduce and broadcast)
  std::size_t whole_;  ///< elements of the whole vector
  std::span<std::byte> arena_;
  std::size_t slots_, stride_;
  std::uint64_t seed_;
  Device* device_;  ///< null: host memory
  CollectiveMode mode_;
  std::uint64_t generation_ = 0;                    ///< of the inputs: each prepare makes new ones
  std::size_t first_ = 0;                           ///< slot of the first repetition of a run
  std::size_t used_ = 0;                            ///< slots the last run wrote
  std::pair<std::size_t, std::uint64_t> recorded_;  ///< first slot and repetitions of the record
  std::vector<WrongResults> wrong_;
  std::function<void(std::span<float>)> fault_;
};

}  // namespace assay::workload
