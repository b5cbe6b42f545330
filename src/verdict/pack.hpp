// SPDX-License-Identifier: Apache-2.0
// Rows of numbers inside JSON: as bytes for CBOR, as base64 for text. Little-endian, like every machine assay
// runs on.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"

namespace assay::verdict {

static_assert(std::endian::native == std::endian::little);

template <class T>
Json to_binary(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return Json::binary(std::move(bytes));
}

template <class T>
std::vector<T> from_bytes(const std::uint8_t* bytes, std::size_t size) {
  if (size % sizeof(T) != 0) throw Error(ErrorKind::data, "holds a broken row of numbers");
  std::vector<T> values(size / sizeof(T));
  if (size > 0) std::memcpy(values.data(), bytes, size);
  return values;
}

template <class T>
std::vector<T> from_binary(const Json& json) {
  const auto& bytes = json.get_binary();
  return from_bytes<T>(bytes.data(), bytes.size());
}

std::string base64(const void* data, std::size_t bytes);
/// Throws Error(data) for text that is no base64.
std::vector<std::uint8_t> from_base64(const std::string& text);

template <class T>
std::string to_base64(const std::vector<T>& values) {
  return base64(values.data(), values.size() * sizeof(T));
}

template <class T>
std::vector<T> from_base64_as(const std::string& text) {
  const auto bytes = from_base64(text);
  return from_bytes<T>(bytes.data(), bytes.size());
}

}  // namespace assay::verdict
