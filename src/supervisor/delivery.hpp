// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// One end of the messages between a supervisor and the collector, which outlive the connection: numbers
/// them, keeps each until the other end has it, and drops those that come twice. A status is not kept.
class Delivery {
 public:
  /// The message as it is to be sent.
  Message number(Message message) {
    message.received = received_;
    if (message.type == MessageType::status) return message;
    message.sequence = ++sent_;
    kept_.push_back(message);
    return message;
  }

  /// False for a message that has come before.
  bool take(const Message& message) {
    acknowledge(message.received);
    if (message.sequence == 0) return true;
    if (message.sequence <= received_) return false;
    received_ = message.sequence;
    return true;
  }

  /// After a new connection was made: what the other end does not have.
  template <typename Send>
  void send_again(std::uint32_t other_has, Send&& send) {
    acknowledge(other_has);
    for (Message& message : kept_) {
      message.received = received_;
      send(message);
    }
  }

  std::uint32_t received() const noexcept { return received_; }
  std::size_t kept() const noexcept { return kept_.size(); }
  /// Of texts.
  std::size_t kept_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const Message& message : kept_) bytes += message.text.size();
    return bytes;
  }
  void forget() { kept_ = {}; }

 private:
  void acknowledge(std::uint32_t sequence) {
    std::erase_if(kept_, [&](const Message& m) { return m.sequence <= sequence; });
  }

  std::uint32_t sent_ = 0, received_ = 0;
  std::vector<Message> kept_;  ///< few: a case has one message in each direction
};

}  // namespace assay::supervisor
