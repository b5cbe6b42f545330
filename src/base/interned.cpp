// SPDX-License-Identifier: Apache-2.0
#include "base/interned.hpp"

#include <functional>
#include <mutex>
#include <unordered_set>

namespace assay {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

}  // namespace

const std::string* Interned::held(std::string_view text) {
  static std::mutex mutex;
  static std::unordered_set<std::string, Hash, std::equal_to<>> texts;
  const std::lock_guard lock(mutex);
  const auto known = texts.find(text);
  return &*(known != texts.end() ? known : texts.emplace(text).first);
}

}  // namespace assay
