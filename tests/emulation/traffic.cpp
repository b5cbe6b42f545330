// SPDX-License-Identifier: Apache-2.0
#include "emulation/traffic.hpp"

#include <unordered_set>

#include "device_memory.hpp"
#include "runtime.hpp"

namespace emulation {
namespace {

std::uint64_t held_value;
/// Lines that were loaded and stay since the word is held.
std::unordered_set<std::uintptr_t>& loaded_lines() {
  static std::unordered_set<std::uintptr_t> lines;
  return lines;
}

}  // namespace

const void* held_word = nullptr;

Counts& counts() noexcept {
  static Counts all;
  return all;
}

void hold_in_cache(const void* word, std::uint64_t value) {
  held_word = word;
  held_value = value;
  loaded_lines().clear();
}

void load_from_cache(const void* p, void* value, std::size_t bytes, bool stays) {
  const auto at = reinterpret_cast<std::uintptr_t>(p), held = reinterpret_cast<std::uintptr_t>(held_word);
  if (held >= at && held + sizeof(held_value) <= at + bytes)
    std::memcpy(static_cast<char*>(value) + (held - at), &held_value, sizeof(held_value));
  if (!stays) return;
  int cache_bytes = 0;
  cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, current_device);
  loaded_lines().insert(at / line_bytes);
  if (loaded_lines().size() * line_bytes >= 4 * static_cast<std::size_t>(cache_bytes)) held_word = nullptr;
}

void count_atomic(const void* p) noexcept {
  if (device_of(p) >= 0) ++counts().atomics;
}

}  // namespace emulation
