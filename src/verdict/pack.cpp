// SPDX-License-Identifier: Apache-2.0
#include "verdict/pack.hpp"

#include <string_view>

namespace assay::verdict {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string base64(const void* data, std::size_t bytes) {
  const auto* in = static_cast<const std::uint8_t*>(data);
  std::string out;
  out.reserve((bytes + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes; i += 3) {
    const std::size_t left = bytes - i;
    const std::uint32_t word = (static_cast<std::uint32_t>(in[i]) << 16) |
                               (left > 1 ? static_cast<std::uint32_t>(in[i + 1]) << 8 : 0) |
                               (left > 2 ? static_cast<std::uint32_t>(in[i + 2]) : 0);
    out += digits[word >> 18];
    out += digits[(word >> 12) & 63];
    out += left > 1 ? digits[(word >> 6) & 63] : '=';
    out += left > 2 ? digits[word & 63] : '=';
  }
  return out;
}

std::vector<std::uint8_t> from_base64(const std::string& text) {
  const auto bad = [] { throw Error(ErrorKind::data, "holds a text that is no base64"); };
  if (text.size() % 4 != 0) bad();
  std::vector<std::uint8_t> out;
  out.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t word = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const char c = text[i + k];
      const auto digit = digits.find(c);
      const bool pad = c == '=' && k >= 2 && i + 4 == text.size();
      if (pad) ++padding;
      if ((digit == std::string_view::npos && !pad) || (!pad && padding > 0)) bad();
      word = (word << 6) | (pad ? 0 : static_cast<std::uint32_t>(digit));
    }
    out.push_back(static_cast<std::uint8_t>(word >> 16));
    if (padding < 2) out.push_back(static_cast<std::uint8_t>((word >> 8) & 255));
    if (padding < 1) out.push_back(static_cast<std::uint8_t>(word & 255));
  }
  return out;
}

}  // namespace assay::verdict
