// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "transport/cuda/device_memory.hpp"
#include "transport/cuda/nccl_library.hpp"
#include "transport/device_collectives.hpp"
#include "transport/forwarding_communicator.hpp"
#include "transport/gpu_transports.hpp"

namespace assay::cuda {

/// Whether NCCL may reduce inside NVLink switches, as far as the environment and the GPU tell: "disabled",
/// "enabled" or "unknown". Bus bandwidth beyond the line rate is possible where it does. Arguments: the
/// values of the variables, null where they are not set.
std::string nvls_state(const char* nvls_enable, const char* algorithms, int compute_major);

/// Buffers in the device's arena go over NCCL, on a stream of this communicator; all else is handed to the
/// communicator it stands before. No wait is without an end: each polls the stream and NCCL's own errors up
/// to the deadline, and then NCCL is aborted and Error(mpi) names what was waited for. After that every call
/// throws.
///
/// A send or receive that is only started is launched with the next call that waits, so that all that were
/// started together make one group: NCCL runs what stands alone in order, and two ranks that send first would
/// wait for each other for ever.
class NcclCommunicator final : public ForwardingCommunicator, public DeviceCollectives {
 public:
  /// Collective over `bootstrap`, which outlives this object. Throws Error(mpi) on all ranks when one of them
  /// cannot.
  static std::unique_ptr<NcclCommunicator> make(const NcclLibrary& nccl, Communicator& bootstrap,
                                                Device& device, const GpuSettings& settings);
  ~NcclCommunicator() override;
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  std::string_view transport() const noexcept override { return "nccl"; }
  std::string path() const override { return path_; }
  std::unique_ptr<Communicator> split(int color, int key) override;

  void send(const void* data, std::size_t bytes, int peer, int tag) override;
  void recv(void* data, std::size_t bytes, int peer, int tag) override;
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void wait_all(std::span<Request> requests) override;
  bool test_all(std::span<Request> requests) override;
  void order_after(void* stream) override;
  void order_before(void* stream, Request& request) override;
  void begin_batch() override { in_batch_ = true; }
  void end_batch() override;
  void give_up_at(double deadline_s) override { settings_.deadline_s = deadline_s; }
  void while_waiting(const std::function<void()>& look) override {
    look_ = look;
    inner_.while_waiting(look);
  }
  /// NCCL takes nothing back: it is aborted.
  void abandon(std::span<Request> requests) override;
  bool usable() const noexcept override { return comm_ != nullptr; }
  bool serialized() const noexcept override { return false; }
  DeviceCollectives* device_collectives() noexcept override { return this; }

  std::unique_ptr<RegisteredMemory> allocate(std::size_t bytes, Registration how, std::string& why) override;
  void record(const std::function<void()>& calls) override;
  void replay() override;

  void barrier() override;
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override;
  void iall_reduce(void* data, std::size_t count, DataType type, ReduceOp op, Request& request) override;
  void reduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type,
                      ReduceOp op) override;
  void ireduce_scatter(const void* in, void* out, std::size_t count_per_rank, DataType type, ReduceOp op,
                       Request& request) override;
  void all_gather(const void* in, void* out, std::size_t bytes_per_rank) override;
  void all_to_all(const void* in, void* out, std::size_t bytes_per_rank) override;
  void broadcast(void* data, std::size_t bytes, int root) override;

 private:
  class Registered;
  /// What a wait is for, for those who read of it.
  struct Operation {
    const char* name = "nothing";
    std::size_t bytes = 0;
    int peer = -1;
    supervisor::Call call = supervisor::Call::wait;
  };
  struct Transfer {
    void* data;
    std::size_t bytes;
    int peer;
    bool send;
  };
  /// An event behind the operations up to a number.
  struct Mark {
    std::uint64_t number;
    Event event;
  };

  NcclCommunicator(const NcclLibrary& nccl, Communicator& bootstrap, Device& device,
                   const GpuSettings& settings);
  void init(const std::string& id);
  void make_blocking();
  ncclComm_t part_of(ncclComm_t whole, int color, int key, bool blocking);
  void await(ncclComm_t comm, const char* call);
  void end(ncclComm_t comm);
  void abort() noexcept;
  void close() noexcept;

  /// Whether `p` is device memory: of the arena, or registered here.
  bool mine(const void* p) const noexcept;
  void start(void* data, std::size_t bytes, int peer, bool send, Request& request);
  void launch_transfers();
  template <typename Call>
  void launch(const Operation& operation, Call&& call);
  template <typename Call>
  void collective(const Operation& operation, Call&& call);
  template <typename Call>
  void begin_collective(const Operation& operation, Request& request, Call&& call);
  Event& mark();
  bool passed(std::uint64_t number);
  void wait_for(std::uint64_t number);
  void wait_stream();
  template <typename Calls>
  ncclResult_t group(Calls&& calls);
  template <typename Query>
  void wait(Query&& query);
  ncclResult_t apart(const std::function<ncclResult_t()>& call);
  void settle(ncclResult_t result);
  ncclResult_t async_state();
  void check(ncclResult_t result, const char* call);
  [[noreturn]] void give_up(const std::string& reason);
  std::string doing() const;
  int awaited() const noexcept;
  void* to_here(void* data, std::size_t bytes);

  const NcclLibrary& nccl_;
  Device& device_;
  GpuSettings settings_;
  supervisor::Heartbeat own_heartbeat_;  ///< without a supervisor
  supervisor::Heartbeat* heartbeat_;
  std::unique_ptr<Communicator> owned_;  ///< of a part
  Stream stream_;
  ncclComm_t comm_ = nullptr;    ///< null once it was aborted
  ncclComm_t parent_ = nullptr;  ///< that comm_ was split from, where comm_ blocks; it does not
  bool blocks_ = false;          ///< comm_
  /// Where a thread of NCCL stores what it makes, also after a failure, at the latest during the abort; what
  /// stays here was never used.
  std::deque<ncclComm_t> arriving_;
  std::set<std::string> called_;  ///< operations that comm_ has connected for, where it blocks
  std::string path_;
  std::uint64_t operations_ = 0;  ///< launched; the next group of transfers has the number after it
  Operation last_;
  std::vector<Transfer> transfers_;  ///< started and not launched
  std::deque<Mark> marks_;
  std::vector<Event> free_events_;
  Scratch word_{16};            ///< what a barrier sums
  std::vector<Scratch> aside_;  ///< where messages for host memory arrive
  struct Delivery {
    void* host;
    const void* device;
    std::size_t bytes;
  };
  std::vector<Delivery> deliveries_;
  bool in_batch_ = false;
  std::vector<std::span<std::byte>> registered_;
  std::optional<Graph> graph_;  ///< what record() recorded
  std::function<void()> look_;
};

}  // namespace assay::cuda
