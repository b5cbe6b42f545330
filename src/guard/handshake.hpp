// SPDX-License-Identifier: Apache-2.0
// How a guardian and the collector show each other that they know the run's key, which never travels between
// them: the collector sends a random challenge, the guardian answers with HMAC-SHA256 over it and a random
// number of its own, and so does the collector. What was overheard serves nobody again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "guard/wire.hpp"

namespace assay::guard {

/// The longest text of this exchange: before it is over nobody may say more.
inline constexpr std::size_t most_handshake_bytes = 512;

/// 64 hexadecimal digits from the kernel's random source: a key, or a number that is used once. Throws
/// Error(resource).
std::string random_token();

/// "1.0.18": of libsodium, which does the arithmetic.
std::string handshake_library_version();

/// The collector's first word to whoever connects.
Message challenge(const std::string& token);
/// The guardian's answer to it. `own` is a fresh token of the guardian.
Message hello(const std::string& key, const std::string& challenge, const std::string& own, int rank,
              int size, const std::string& host);
/// Who the guardian is, when its answer is right.
struct Guest {
  int rank = -1;
  std::string host, own;
};
std::optional<Guest> guest_of(const Message& hello, const std::string& key, const std::string& challenge,
                              int size);
/// The collector's last word, and whether it is right.
Message welcome(const std::string& key, const std::string& challenge, const Guest& guest);
bool is_welcome(const Message& message, const std::string& key, const std::string& challenge,
                const Guest& guest);

}  // namespace assay::guard
