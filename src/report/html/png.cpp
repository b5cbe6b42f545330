// SPDX-License-Identifier: Apache-2.0
// PNG (ISO/IEC 15948) with stored blocks of RFC 1951: a few kilobytes need no compressor.
#include "report/html/png.hpp"

#include <algorithm>

#include "base/sha256.hpp"

namespace assay::report {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string out;
  for (unsigned shift = 32; shift > 0; shift -= 8)
    out += static_cast<char>(static_cast<std::uint8_t>(value >> (shift - 8)));
  return out;
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int k = 0; k < 8; ++k) crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
  }
  return ~crc;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<std::uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

std::string stored(const std::string& data) {
  std::string out = "\x78\x01";
  std::uint32_t a = 1, b = 0;
  for (const char c : data) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  for (std::size_t at = 0; at < data.size(); at += 65535) {
    const std::size_t n = std::min<std::size_t>(65535, data.size() - at);
    out += at + n == data.size() ? '\1' : '\0';
    for (const std::size_t v : {n, ~n}) {
      out += static_cast<char>(static_cast<std::uint8_t>(v));
      out += static_cast<char>(static_cast<std::uint8_t>(v >> 8U));
    }
    out.append(data, at, n);
  }
  return out + big_endian(b << 16U | a);
}

}  // namespace

std::string png_uri(std::size_t width, const std::vector<std::uint8_t>& points,
                    const std::vector<Rgb>& palette) {
  const std::size_t height = width == 0 ? 0 : points.size() / width;
  std::string colours, rows;
  for (const Rgb& c : palette)
    for (const auto v : c) colours += static_cast<char>(v);
  for (std::size_t y = 0; y < height; ++y) {
    rows += '\0';
    for (std::size_t x = 0; x < width; ++x) rows += static_cast<char>(points[y * width + x]);
  }
  std::string head =
      big_endian(static_cast<std::uint32_t>(width)) + big_endian(static_cast<std::uint32_t>(height));
  head += std::string("\x08\x03\x00\x00\x00", 5);
  return "data:image/png;base64," +
         base64("\x89PNG\r\n\x1a\n" + chunk("IHDR", head) + chunk("PLTE", colours) +
                chunk("IDAT", stored(rows)) + chunk("IEND", ""));
}

}  // namespace assay::report
