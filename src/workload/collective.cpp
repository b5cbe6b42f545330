// SPDX-License-Identifier: Apache-2.0
#include "workload/collective.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "transport/device_collectives.hpp"

namespace assay::workload {
namespace {

constexpr std::size_t most_primed_bytes = 4096;

bool shared_out(Op operation) noexcept { return operation != Op::all_reduce && operation != Op::broadcast; }

/// Elements a rank holds of a vector of `bytes`: 1/n of it, at least one, where the operation shares it out.
std::size_t share_of(Op operation, std::size_t bytes, int ranks) noexcept {
  const std::size_t count = bytes / sizeof(float);
  return shared_out(operation) ? std::max<std::size_t>(1, count / static_cast<std::size_t>(ranks)) : count;
}

/// Bytes of one side of a slot, aligned; the larger side decides. What is shared out loses a remainder that
/// can be smaller with fewer ranks, so it is not left out here: slots also hold what a part of the ranks
/// counts.
std::size_t side_bytes(Op operation, std::size_t bytes, int ranks) noexcept {
  const std::size_t most = shared_out(operation) ? std::max(bytes, counted_bytes(operation, bytes, ranks))
                                                 : counted_bytes(operation, bytes, ranks);
  return (most + 63) / 64 * 64;
}

}  // namespace

double bus_factor(Op operation, int ranks) noexcept {
  const double n = ranks;
  switch (operation) {
    case Op::all_reduce: return 2 * (n - 1) / n;
    case Op::reduce_scatter:
    case Op::all_gather:
    case Op::all_to_all: return (n - 1) / n;
    case Op::broadcast: return 1;
  }
  return 0;
}

bool has_in_place_form(Op operation) noexcept {
  return operation == Op::all_reduce || operation == Op::reduce_scatter || operation == Op::all_gather;
}

std::size_t slot_bytes(Op operation, std::size_t bytes, int ranks, bool in_place) noexcept {
  return (in_place ? 1 : 2) * side_bytes(operation, bytes, ranks);
}

std::size_t counted_bytes(Op operation, std::size_t bytes, int ranks) noexcept {
  return share_of(operation, bytes, ranks) * (shared_out(operation) ? static_cast<std::size_t>(ranks) : 1) *
         sizeof(float);
}

Collective::Collective(Communicator& comm, Op operation, std::size_t bytes, std::span<std::byte> arena,
                       std::size_t slots, std::uint64_t seed, Device* device, CollectiveMode mode)
    : comm_(comm),
      operation_(operation),
      share_(share_of(operation, bytes, comm.size())),
      whole_(shared_out(operation) ? share_ * static_cast<std::size_t>(comm.size()) : share_),
      arena_(arena),
      slots_(slots),
      stride_(slot_bytes(operation, bytes, comm.size(), mode.in_place)),
      seed_(seed),
      device_(device != nullptr && device->has_own_memory() ? device : nullptr),
      mode_(mode) {
  if (slots_ == 0 || arena_.size() < slots_ * stride_)
    throw Error(ErrorKind::internal, "allreduce: the arena is smaller than its slots");
}

std::size_t Collective::input_count() const noexcept {
  return operation_ == Op::all_gather ? share_ : whole_;
}
std::size_t Collective::output_count() const noexcept {
  return operation_ == Op::reduce_scatter ? share_ : whole_;
}

float* Collective::input(std::size_t slot) noexcept {
  auto* first = reinterpret_cast<float*>(arena_.data() + slot * stride_);
  const bool own_share = mode_.in_place && operation_ == Op::all_gather;
  return own_share ? first + static_cast<std::size_t>(comm_.rank()) * share_ : first;
}
float* Collective::output(std::size_t slot) noexcept {
  auto* first = reinterpret_cast<float*>(arena_.data() + slot * stride_);
  if (!mode_.in_place) return first + stride_ / 2 / sizeof(float);
  return operation_ == Op::reduce_scatter ? first + static_cast<std::size_t>(comm_.rank()) * share_ : first;
}

ExactValues Collective::values(std::size_t slot) const noexcept {
  return ExactValues(seed_, comm_.size(), generation_ * slots_ + slot);
}

void Collective::prepare(std::uint64_t repetitions) {
  ++generation_;
  first_ = (first_ + used_) % slots_;
  const std::size_t used = std::min<std::size_t>(slots_, repetitions);
  for (std::size_t i = 0; i < used; ++i) fill_slot((first_ + i) % slots_);
  if (device_ != nullptr) device_->synchronize();
  constexpr std::uint64_t most_recorded = 1000;
  if (mode_.recorded && repetitions <= most_recorded) record(repetitions);
}

void Collective::record(std::uint64_t repetitions) {
  if (recorded_ == std::pair(first_, repetitions)) return;
  recorded_ = {};
  comm_.device_collectives()->record([&] { call_all(repetitions); });
  recorded_ = {first_, repetitions};
}

void Collective::fill_slot(std::size_t slot) {
  const ExactValues data = values(slot);
  const auto me = static_cast<std::uint64_t>(comm_.rank());
  switch (operation_) {
    case Op::all_gather: fill(data.contribution(comm_.rank()), me * share_, input(slot), share_); break;
    case Op::broadcast:
      // In place on the output; what the others still hold there is of an earlier generation and thus
      // wrong.
      if (comm_.rank() == 0) fill(data.contribution(0), 0, output(slot), whole_);
      break;
    default: fill(data.contribution(comm_.rank()), 0, input(slot), input_count()); break;
  }
}

void Collective::fill(const ExactLine& line, std::uint64_t first, float* data, std::size_t count) {
  if (device_ == nullptr)
    kernels::host::exact_fill(line, first, data, count);
  else
    device_->exact_fill(line, first, data, count);
}

ExactErrors Collective::compare(const ExactLine& line, std::uint64_t first, const float* data,
                                std::size_t count) {
  return device_ == nullptr ? kernels::host::exact_check(line, first, data, count)
                            : device_->exact_check(line, first, data, count);
}

void Collective::call(std::size_t slot) {
  float* in = input(slot);
  float* out = output(slot);
  switch (operation_) {
    case Op::all_reduce: comm_.all_reduce(in, out, whole_, DataType::fp32, ReduceOp::sum); break;
    case Op::reduce_scatter: comm_.reduce_scatter(in, out, share_, DataType::fp32, ReduceOp::sum); break;
    case Op::all_gather: comm_.all_gather(in, out, share_ * sizeof(float)); break;
    case Op::all_to_all: comm_.all_to_all(in, out, share_ * sizeof(float)); break;
    case Op::broadcast: comm_.broadcast(out, whole_ * sizeof(float), 0); break;
  }
}

void Collective::prime() {
  if (whole_ * sizeof(float) > most_primed_bytes) return;
  call(first_);
  spoil(first_);
  if (mode_.in_place) fill_slot(first_);
  if (device_ != nullptr) device_->synchronize();
}

/// What a timed operation leaves there must be its own.
void Collective::spoil(std::size_t slot) {
  if (operation_ == Op::broadcast && comm_.rank() == 0) return;  // it holds the input
  float* out = mode_.in_place ? reinterpret_cast<float*>(arena_.data() + slot * stride_) : output(slot);
  const std::size_t bytes = (mode_.in_place ? whole_ : output_count()) * sizeof(float);
  std::array<std::byte, most_primed_bytes> nans;
  nans.fill(std::byte{0xff});
  if (device_ == nullptr)
    std::memcpy(out, nans.data(), bytes);
  else
    device_->copy_to_device(out, nans.data(), bytes);
}

void Collective::call_all(std::uint64_t repetitions) {
  for (std::uint64_t i = 0; i < repetitions; ++i) call((first_ + i) % slots_);
}

void Collective::run(std::uint64_t repetitions) {
  if (mode_.in_place && repetitions > slots_)
    throw Error(ErrorKind::internal, "allreduce: more repetitions in place than slots");
  if (mode_.recorded) {
    record(repetitions);
    comm_.device_collectives()->replay();
  } else {
    comm_.begin_batch();
    call_all(repetitions);
    comm_.end_batch();
  }
  used_ = std::min<std::size_t>(slots_, repetitions);
}

ExactErrors Collective::check(std::size_t slot) {
  const ExactValues data = values(slot);
  const auto me = static_cast<std::uint64_t>(comm_.rank());
  const float* out = output(slot);
  ExactErrors all;
  const auto add = [&all](const ExactErrors& part, std::uint64_t offset) {
    if (all.count == 0 && part.count != 0) {
      all = part;
      all.first_index += offset;
    } else {
      all.count += part.count;
    }
  };
  switch (operation_) {
    case Op::all_reduce: return compare(data.total(), 0, out, whole_);
    case Op::reduce_scatter: return compare(data.total(), me * share_, out, share_);
    case Op::broadcast: return compare(data.contribution(0), 0, out, whole_);
    case Op::all_gather:
    case Op::all_to_all:
      for (int rank = 0; rank < comm_.size(); ++rank) {
        const std::uint64_t offset = static_cast<std::uint64_t>(rank) * share_;
        const std::uint64_t first =
            (operation_ == Op::all_gather ? static_cast<std::uint64_t>(rank) : me) * share_;
        add(compare(data.contribution(rank), first, out + offset, share_), offset);
      }
  }
  return all;
}

void Collective::verify() {
  for (std::size_t i = 0; i < used_; ++i) {
    const std::size_t slot = (first_ + i) % slots_;
    if (fault_) fault_(result(slot));
    const ExactErrors errors = check(slot);
    if (errors.count == 0) continue;
    const volatile float* again = output(slot) + errors.first_index;
    std::uint32_t reread = 0;
    if (device_ != nullptr)
      device_->copy_to_host(&reread, output(slot) + errors.first_index, sizeof reread);
    else
      reread = std::bit_cast<std::uint32_t>(static_cast<float>(*again));
    wrong_.push_back({errors, reread});
  }
}

}  // namespace assay::workload
