// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/random.hpp"
#include "device/memory_ops.hpp"
#include "kernels/digest.hpp"

namespace assay {

const char* to_string(NumType type) noexcept {
  switch (type) {
    case NumType::fp64: return "fp64";
    case NumType::fp32: return "fp32";
    case NumType::tf32: return "tf32";
    case NumType::fp16: return "fp16";
    case NumType::bf16: return "bf16";
    case NumType::fp8: return "fp8";
    case NumType::fp8_fast: return "fp8_fast";
    case NumType::fp8_e5m2: return "fp8_e5m2";
    case NumType::int8: return "int8";
  }
  return "";
}

std::optional<NumType> num_type(std::string_view name) noexcept {
  for (const NumType type : num_types)
    if (name == to_string(type)) return type;
  return {};
}

std::vector<std::string> num_type_names() {
  std::vector<std::string> names;
  for (const NumType type : num_types) names.emplace_back(to_string(type));
  return names;
}

std::uint64_t Device::arithmetic() const {
  constexpr std::array others = {"threads", "pinned", "driver"};
  std::uint64_t hash = hash_text("");
  for (const auto& [key, value] : identity())
    if (std::ranges::find(others, key) == others.end()) hash = hash_text(key + "=" + value + ";", hash);
  return hash;
}

const char* to_string(OnChip test) noexcept {
  switch (test) {
    case OnChip::l1: return "l1";
    case OnChip::shared: return "shared";
    case OnChip::l2: break;
  }
  return "l2";
}

std::size_t size_of(NumType type) noexcept {
  switch (type) {
    case NumType::fp64: return 8;
    case NumType::fp32:
    case NumType::tf32: return 4;
    case NumType::fp16:
    case NumType::bf16: return 2;
    case NumType::fp8:
    case NumType::fp8_fast:
    case NumType::fp8_e5m2:
    case NumType::int8: return 1;
  }
  return 0;
}

std::size_t result_size(NumType type, Output output) noexcept {
  switch (type) {
    case NumType::fp64: return 8;
    case NumType::fp16:
    case NumType::bf16:
    case NumType::fp8:
    case NumType::fp8_fast:
    case NumType::fp8_e5m2: return output == Output::exact ? 4 : 2;
    case NumType::fp32:
    case NumType::tf32:
    case NumType::int8: break;
  }
  return 4;
}

Matmul plain_product(NumType type, const GemmShape& shape, Output output) noexcept {
  const bool b_by_columns = size_of(type) == 1;
  return {shape.m, shape.n, shape.k, false, b_by_columns, false, output};
}

std::vector<std::uint64_t> Device::digests(std::span<const void* const> data, std::size_t bytes) {
  std::vector<std::uint64_t> all;
  for (const void* one : data) all.push_back(digest(one, bytes));
  return all;
}

void Device::poison(void* data, std::size_t bytes, std::size_t step) {
  kernels::host::poison(data, bytes, step);
}

void Device::payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes) {
  kernels::host::payload_fill(key, data, bytes);
}

kernels::PayloadErrors Device::payload_check(kernels::PayloadKey key, const void* data, std::size_t bytes) {
  return kernels::host::payload_check(key, data, bytes);
}

void Device::exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data, std::size_t count) {
  if (has_own_memory())
    throw Error(ErrorKind::device, "the " + std::string(kind()) + " device does not write exact sums");
  kernels::host::exact_fill(line, first, data, count);
}

kernels::ExactErrors Device::exact_check(const kernels::ExactLine& line, std::uint64_t first,
                                         const float* data, std::size_t count) {
  if (has_own_memory())
    throw Error(ErrorKind::device, "the " + std::string(kind()) + " device does not check exact sums");
  return kernels::host::exact_check(line, first, data, count);
}

}  // namespace assay
