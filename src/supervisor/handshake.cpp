// SPDX-License-Identifier: Apache-2.0
#include "supervisor/handshake.hpp"

#include <sodium.h>

#include <array>

#include "base/error.hpp"

namespace assay::supervisor {
namespace {

constexpr std::size_t token_digits = 64;
constexpr std::size_t most_host = 256;

std::string hex(const unsigned char* bytes, std::size_t n) {
  std::string text(2 * n + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes, n);
  text.pop_back();
  return text;
}

std::string hmac(const std::string& key, const std::string& text) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> out;
  crypto_auth_hmacsha256_final(&state, out.data());
  return hex(out.data(), out.size());
}

/// Takes equal time for a wrong text and a right one.
bool equal(const std::string& a, const std::string& b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The parts have fixed lengths or none of them holds a line end: no two exchanges have one text.
std::string said(const char* who, const std::string& challenge, const std::string& own, int rank, int size,
                 const std::string& host) {
  return std::string(who) + '\n' + challenge + '\n' + own + '\n' + std::to_string(rank) + '\n' +
         std::to_string(size) + '\n' + host;
}

}  // namespace

std::string random_token() {
  if (sodium_init() < 0)
    throw Error(ErrorKind::resource, "the kernel gives no random numbers for the supervisors' key");
  std::array<unsigned char, token_digits / 2> bytes;
  randombytes_buf(bytes.data(), bytes.size());
  return hex(bytes.data(), bytes.size());
}

std::string handshake_library_version() { return sodium_version_string(); }

Message challenge(const std::string& token) { return {MessageType::challenge, 0, 0, token}; }

Message hello(const std::string& key, const std::string& challenge, const std::string& own, int rank,
              int size, const std::string& host) {
  return {MessageType::hello, rank, size,
          own + hmac(key, said("supervisor", challenge, own, rank, size, host)) + host};
}

std::optional<Guest> guest_of(const Message& hello, const std::string& key, const std::string& challenge,
                              int size) {
  if (hello.type != MessageType::hello || hello.rank <= 0 || hello.rank >= size || hello.number != size)
    return std::nullopt;
  if (hello.text.size() < 2 * token_digits || hello.text.size() > 2 * token_digits + most_host)
    return std::nullopt;
  Guest guest{hello.rank, hello.text.substr(2 * token_digits), hello.text.substr(0, token_digits)};
  const std::string proof = hello.text.substr(token_digits, token_digits);
  if (!equal(proof, hmac(key, said("supervisor", challenge, guest.own, hello.rank, size, guest.host))))
    return std::nullopt;
  return guest;
}

Message welcome(const std::string& key, const std::string& challenge, const Guest& guest, Host host) {
  const auto number = static_cast<std::int32_t>(host);
  return {MessageType::welcome, guest.rank, number,
          hmac(key, said("collector", challenge, guest.own, guest.rank, number, ""))};
}

bool is_welcome(const Message& message, const std::string& key, const std::string& challenge,
                const Guest& guest) {
  return message.type == MessageType::welcome &&
         equal(message.text, welcome(key, challenge, guest, static_cast<Host>(message.number)).text);
}

std::string node_socket_name(const std::string& key, const std::string& host) {
  return "assay-" + hmac(key, "node\n" + host).substr(0, token_digits / 2);
}

}  // namespace assay::supervisor
