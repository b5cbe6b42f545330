// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/cuda/device_memory.hpp"
#include "transport/forwarding_communicator.hpp"
#include "transport/gpu_transports.hpp"

namespace assay::cuda {

/// Lets memory of the device's arena be sent by a communicator for host memory only: by copies to
/// pinned memory and back. A message goes in pieces, of which some are copied while others are on their way.
/// What lies elsewhere is handed through, but for messages of payload_tag: their two ends must cut them
/// alike, and a fault made on purpose receives them in host memory.
class StagedCommunicator final : public ForwardingCommunicator {
 public:
  /// `direct`: messages are handed through too, since MPI has shown that it can (gpu_direct.hpp). `below`
  /// outlives this object.
  StagedCommunicator(Communicator& below, Device& device, bool direct,
                     supervisor::Heartbeat* heartbeat = nullptr);

  std::string path() const override;
  std::unique_ptr<Communicator> split(int color, int key) override;

  void send(const void* data, std::size_t bytes, int peer, int tag) override;
  void recv(void* data, std::size_t bytes, int peer, int tag) override;
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override;
  void wait_all(std::span<Request> requests) override;
  void while_waiting(const std::function<void()>& look) override {
    look_ = look;
    inner_.while_waiting(look);
  }
  void abandon(std::span<Request> requests) override;
  bool test_all(std::span<Request> requests) override;
  void order_after(void* stream) override;
  void order_before(void* stream, Request& request) override;
  bool serialized() const noexcept override { return false; }

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
  static constexpr std::size_t piece_bytes = std::size_t{512} << 10, pieces_at_once = 4;
  static constexpr std::size_t part_bytes = std::size_t{4} << 20;  ///< of collectives

  /// A piece on its way: first copied and then sent, or first received and then copied.
  struct Piece {
    Event copied;
    Request message;
  };
  struct Transfer {
    bool send;
    std::byte* data;
    std::size_t bytes;
    int peer, tag;
    Pinned buffer;                                  ///< pieces_at_once pieces, or one small one
    std::size_t begun = 0, halfway = 0, ended = 0;  ///< pieces so far
    std::array<Piece, pieces_at_once> pieces = {};

    std::size_t count() const noexcept {
      return std::max<std::size_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
    }
    std::size_t size_of(std::size_t piece) const noexcept {
      return std::min(piece_bytes, bytes - std::min(bytes, piece * piece_bytes));
    }
    std::byte* staged(std::size_t piece) const noexcept {
      return buffer.data() + piece % pieces_at_once * piece_bytes;
    }
    Piece& at(std::size_t piece) noexcept { return pieces[piece % pieces_at_once]; }
  };

  bool mine(const void* p, int tag) const noexcept {
    return !direct_ && (tag == payload_tag || in_arena(device_, p));
  }
  bool mine(const void* p) const noexcept { return in_arena(device_, p); }
  void start(void* data, std::size_t bytes, int peer, int tag, bool send, Request& request);
  void progress();
  /// The peer whose messages are all that this rank waits for; nothing while a copy of its GPU is under way.
  std::optional<int> waits_for() const noexcept;
  void advance_send(Transfer& t);
  void advance_recv(Transfer& t);
  void copy(void* to, const void* from, std::size_t bytes);
  void synchronize();
  Pinned take(std::size_t bytes);
  void give(Pinned buffer);
  std::byte* room(std::size_t bytes);
  template <typename Operation>
  void in_parts(const void* in, void* out, std::size_t bytes, bool reads, bool writes, Operation&& operation);
  template <typename Operation>
  void whole(const void* in, std::size_t in_bytes, void* out, std::size_t out_bytes, Operation&& operation);
  void reduce_host(void* data, std::size_t count, DataType type, ReduceOp op);

  Device& device_;
  bool direct_;
  supervisor::Heartbeat* heartbeat_;
  std::unique_ptr<Communicator> owned_;  ///< of a part
  Stream stream_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Transfer> transfers_;  ///< by number, in the order in which they were started
  std::vector<Pinned> spare_;                    ///< of all sizes that were needed
  Pinned room_;                                  ///< of collectives
  std::function<void()> look_;
  std::vector<float> wide_;  ///< for sums of bf16, which MPI does not know
};

}  // namespace assay::cuda
