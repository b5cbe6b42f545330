// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

#include "supervisor/reception.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// A relay sends a beat so often, in s; a supervisor that heard nothing for `relay_limit_s` leaves it.
inline constexpr double beat_every_s = 0.5;
inline constexpr double relay_limit_s = 2.0;

/// In one supervisor of a node: the others' connections to it over a Unix socket. Their messages pass
/// unchanged.
class Relay {
 public:
  using Up = std::function<void(const Message&)>;

  /// `socket` listens; `others`: how many supervisors may come.
  Relay(int socket, const std::string& key, int ranks, int others)
      : reception_(socket, key, ranks, others), others_(others) {}

  /// Without `reads` the others wait: the collector is behind.
  void watch(std::vector<pollfd>& fds, bool reads) const;
  void serve(double now, bool reads, const Up& up);
  /// To the supervisor of `message.rank`.
  void send(const Message& message);
  void send_all(MessageType type);
  bool empty() const noexcept { return members_.empty(); }

 private:
  struct Member {
    int rank;
    int attempt;
    Stream stream;
  };
  void read(Member& member, const Up& up);

  Reception reception_;
  int others_;
  std::vector<Member> members_;
  double beat_at_s_ = 0;
};

}  // namespace assay::supervisor
