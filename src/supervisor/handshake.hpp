// SPDX-License-Identifier: Apache-2.0
// Mutual authentication of a supervisor and the collector by the run's key, which is not sent: the collector
// sends a random challenge, the supervisor answers with HMAC-SHA256 over it and a random number of its own,
// and the collector answers that in the same way. Recorded messages cannot be replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// Longest text of this exchange; longer messages are refused before it is complete.
inline constexpr std::size_t most_handshake_bytes = 512;

/// 64 hexadecimal digits from the kernel's random source: a key, or a number that is used once. Throws
/// Error(resource).
std::string random_token();

/// "1.0.18": of libsodium, which does the arithmetic.
std::string handshake_library_version();

/// The collector's first message on a connection.
Message challenge(const std::string& token);
/// The supervisor's answer to it. `own` is a fresh token of the supervisor.
Message hello(const std::string& key, const std::string& challenge, const std::string& own, int rank,
              int size, const std::string& host);
/// The supervisor's identity if its answer is right.
struct Guest {
  int rank = -1;
  std::string host, own;
};
std::optional<Guest> guest_of(const Message& hello, const std::string& key, const std::string& challenge,
                              int size);
/// Who answers: the collector, or a supervisor that relays its node's messages to it.
enum class Host : std::int32_t { collector, relay };
/// The answer, and its check.
Message welcome(const std::string& key, const std::string& challenge, const Guest& guest,
                Host host = Host::collector);
bool is_welcome(const Message& message, const std::string& key, const std::string& challenge,
                const Guest& guest);

/// The Unix socket of a node's relay in the abstract namespace: only those with the key can know it.
std::string node_socket_name(const std::string& key, const std::string& host);

}  // namespace assay::supervisor
