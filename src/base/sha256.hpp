// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces.
class Sha256 {
 public:
  Sha256& add(std::string_view bytes);
  std::array<std::uint8_t, 32> finish();  ///< the digest; once, after the last add()

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> buffer_{};
  std::uint64_t bytes_ = 0;
};

std::string base64(std::string_view bytes);  ///< RFC 4648 with padding
/// "sha256-" sources of a Content-Security-Policy: the digest in base64, without the prefix.
std::string sha256_base64(std::string_view bytes);
/// The digest of a file's content in lower-case hexadecimal; empty when it cannot be read or is no file.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace assay
