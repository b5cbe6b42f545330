// SPDX-License-Identifier: Apache-2.0
// Messages between a worker, its supervisor and the collector: framed, bounded, over stream sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace assay::supervisor {

enum class MessageType : std::uint32_t {
  // supervisor -> collector
  hello = 1,     ///< number: ranks the sender expects; text: answer to the challenge, host
  status,        ///< text: Snapshot
  died,          ///< number: wait status; the worker ended without `bye`
  done,          ///< number: exit code; the worker ended after `bye`, or was killed by order
  trace,         ///< text: the stack
  stop_request,  ///< number: the signal that ends the run
  touched,       ///< the directory has answered
  // worker -> supervisor -> collector
  start,    ///< rank 0; text for Controller::start
  ready,    ///< text for Controller::ready
  record,   ///< number: case; text: the rank's record
  bye,      ///< number: the worker's exit code
  idle,     ///< the rank takes no part in the run and waits for its end
  part,     ///< text: the next part of the text of the start, ready or record that follows
  connect,  ///< worker -> supervisor only; text: where the collector listens
  // collector -> supervisor
  challenge,  ///< text: a random number
  welcome,    ///< text: the answer to the supervisor's
  trace_request,
  kill,        ///< number: 1 ends the worker for good
  exit,        ///< number: exit code
  part_taken,  ///< a part has arrived: more may follow
  touch,       ///< text: a directory, to be tried by a process of its own
  // collector -> supervisor -> worker
  address,  ///< rank 0: where the collector listens
  started,  ///< number: kind of the error, -1 for none; text: its message
  step,     ///< number: case to run, or one of the two below
  // between a supervisor, the relay of its node and the collector (route.hpp)
  join,            ///< up: a rank is reached over this connection; number: its attempt, text: its host
  joined,          ///< the collector's answer; number: the attempt
  left,            ///< relay -> collector: the connection of a rank to its relay broke; number: its attempt
  beat,            ///< relay -> supervisor: the relay runs
  collector_gone,  ///< relay -> supervisor
  last = collector_gone
};
inline constexpr int no_more_cases = -1;
inline constexpr int next_segment = -2;  ///< plan again with the next seed and send `ready` again

struct Message {
  MessageType type = MessageType::status;
  std::int32_t rank = -1;
  std::int32_t number = 0;
  std::string text;
  std::uint32_t sequence = 0;  ///< see Delivery; 0: may be lost
  std::uint32_t received = 0;  ///< the last sequence number that the sender has received
};

/// A longer text of a worker travels in parts of this size; the collector takes no longer one in all.
inline constexpr std::size_t part_bytes = std::size_t{256} << 10, most_text_bytes = std::size_t{512} << 20;

/// Gives `send` the parts of a long text, then the message with the rest of it.
template <typename Send>
void in_parts(Message message, Send&& send) {
  std::size_t at = 0;
  for (; message.text.size() - at > part_bytes; at += part_bytes)
    send(Message{MessageType::part, message.rank, 0, message.text.substr(at, part_bytes)});
  if (at > 0) message.text.erase(0, at);
  send(message);
}

/// One non-blocking end of a connection. Owns the descriptor.
class Stream {
 public:
  static constexpr std::size_t large_text = std::size_t{16} << 20;

  explicit Stream(int fd = -1, std::size_t text_limit = large_text);
  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }
  void close() noexcept;
  void allow_large() noexcept { limit_ = large_text; }

  void queue(const Message& message);
  bool wants_out() const noexcept { return sent_ < out_.size(); }
  std::size_t unsent_bytes() const noexcept { return out_.size() - sent_; }
  /// Sends what the socket takes now. False when the other end is gone.
  bool pump_out() noexcept;
  /// Reads available data. False when the other end is gone; earlier messages can still be taken.
  bool pump_in();
  /// The next whole message. Throws Error(data) for invalid data.
  std::optional<Message> take();

  /// Blocking, for the worker: false when the other end is gone.
  bool send_all(const Message& message);
  std::optional<Message> wait();

 private:
  int fd_;
  std::size_t limit_;
  std::string in_, out_;
  std::size_t taken_ = 0, sent_ = 0;
};

}  // namespace assay::supervisor
