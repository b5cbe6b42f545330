// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class DeviceCollectives;

enum class DataType { int32, uint64, fp32, fp64, bf16 };
enum class ReduceOp { sum, min, max, bit_and, bit_or };
std::size_t size_of(DataType type) noexcept;

/// Tag of the messages whose content the suites check: the only ones that faults made on purpose touch.
inline constexpr int payload_tag = 203;

/// A request of a non-blocking transfer; completed by Communicator::wait_all.
struct Request {
  alignas(8) std::byte storage[16] = {};
};

/// A group of ranks over one transport. Buffers are in the memory of the device the transport serves. Sizes
/// are std::size_t throughout; an implementation splits what its library cannot count. Errors throw
/// Error(mpi).
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// The number that rank `peer` has in the launch, which heartbeats use; -1 for no rank.
  virtual int launch_rank(int peer) const noexcept { return peer; }
  virtual std::string_view transport() const noexcept = 0;  ///< "mpi", "ucx", "nccl"
  /// The path bytes take, as far as the transport tells, e.g. "ob1/vader"; "requested:..." when only asked
  /// for.
  virtual std::string path() const = 0;

  /// Collective. Ranks with color < 0 get null.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;

  // Point to point, on bytes.
  virtual void send(const void* data, std::size_t bytes, int peer, int tag) = 0;
  virtual void recv(void* data, std::size_t bytes, int peer, int tag) = 0;
  virtual void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) = 0;
  virtual void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) = 0;
  virtual void wait_all(std::span<Request> requests) = 0;
  /// Drives what was started on, without waiting; true when all of it is complete. The default waits.
  virtual bool test_all(std::span<Request> requests) {
    wait_all(requests);
    return true;
  }
  /// What is started from now on begins after all that was queued on this stream of the device
  /// (Device::stream). Nothing to do where buffers are host memory, whose operations are complete when they
  /// return.
  virtual void order_after(void* /*stream*/) {}
  /// What is queued on the stream from now on begins after `request` is complete; the host does not wait. The
  /// default waits.
  virtual void order_before(void* /*stream*/, Request& request) { wait_all({&request, 1}); }
  /// Collectives on device memory that are called between these two are queued one behind the other, and
  /// complete when end_batch returns: what is timed is them, and not the host that waits for each. Nothing to
  /// do where the host takes part.
  virtual void begin_batch() {}
  virtual void end_batch() {}
  /// Registered buffers and recorded batches; null where the transport has none.
  virtual DeviceCollectives* device_collectives() noexcept { return nullptr; }
  /// Waits that other ranks do not end are given up when now_s() reaches this, where the transport can:
  /// Error(mpi).
  virtual void give_up_at(double /*deadline_s*/) {}
  /// False once that has happened: nothing can be sent any more.
  virtual bool usable() const noexcept { return true; }
  /// `look` is called again and again while a transfer waits for another rank, where the transport can; what
  /// it throws ends the wait. Empty: transfers wait without looking.
  virtual void while_waiting(const std::function<void()>& /*look*/) {}
  /// Takes back transfers that were started and that nobody will wait for: nothing arrives in their buffers
  /// any more. Collectives that MPI has started cannot be taken back: their buffers must remain.
  virtual void abandon(std::span<Request> /*requests*/) {}
  /// Whether a second thread may call while no other one does.
  virtual bool serialized() const noexcept { return false; }

  // Collectives, timed by the allreduce suite. `in` may equal `out` where noted in place. Counts are
  // elements.
  virtual void barrier() = 0;
  virtual void all_reduce(const void* in, void* out, std::size_t count, DataType type,
                          ReduceOp op) = 0;  ///< in place ok
  /// In place; starts, and is completed by wait_all or test_all together with transfers. The default
  /// completes at once.
  virtual void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) {
    all_reduce(data, data, count, type, op);
    request = {};
  }
  virtual void reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                              ReduceOp op) = 0;
  /// Starts, as iall_reduce does. `in` and `out` do not overlap and stay untouched until it is complete. The
  /// default completes at once.
  virtual void ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                               ReduceOp op, Request& request) {
    reduce_scatter(in, out, count_per_rank, type, op);
    request = {};
  }
  virtual void all_gather(const void* in, void* out, std::size_t bytes_per_rank) = 0;
  virtual void all_to_all(const void* in, void* out, std::size_t bytes_per_rank) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;

  // For the harness, never timed.
  /// A barrier that sleeps while it waits, so that waiting ranks leave their cores to the one that measures.
  virtual void quiet_barrier() = 0;
  /// Texts of all ranks at `root` in rank order; elsewhere empty.
  virtual std::vector<std::string> gather_text(const std::string& mine, int root) = 0;
  virtual std::vector<std::string> all_gather_text(const std::string& mine) = 0;
  virtual std::string broadcast_text(const std::string& mine, int root) = 0;

  double max(double value) {
    double out = value;
    all_reduce(&value, &out, 1, DataType::fp64, ReduceOp::max);
    return out;
  }
  double min(double value) {
    double out = value;
    all_reduce(&value, &out, 1, DataType::fp64, ReduceOp::min);
    return out;
  }
  double sum(double value) {
    double out = value;
    all_reduce(&value, &out, 1, DataType::fp64, ReduceOp::sum);
    return out;
  }
};

}  // namespace assay
