// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

std::string sha256_hex(std::string_view bytes) {
  return fmt::format("{:02x}", fmt::join(Sha256().add(bytes).finish(), ""));
}

// FIPS 180-4 examples, and lengths around the padding's edges against coreutils' sha256sum.
TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

TEST(Sha256, PiecesAreTheWhole) {
  for (const std::size_t size : {55U, 56U, 63U, 64U, 65U, 119U, 120U, 128U}) {
    const std::string text(size, 'x');
    Sha256 pieces;
    for (const char c : text) pieces.add({&c, 1});
    Sha256 whole;
    EXPECT_EQ(pieces.finish(), whole.add(text).finish()) << size;
  }
}

TEST(Base64, Padding) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace assay
