// SPDX-License-Identifier: Apache-2.0
#include "base/glob.hpp"

#include <cstddef>

namespace assay {
namespace {

constexpr std::size_t none = std::string_view::npos;

/// The index behind the set that opens at `at`, or `none` when it is never closed: then [ is a plain
/// character.
std::size_t end_of_set(std::string_view pattern, std::size_t at) noexcept {
  std::size_t i = at + 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  const std::size_t close =
      i < pattern.size() ? pattern.find(']', i + 1) : none;  // ] may be the first of a set
  return close == none ? none : close + 1;
}

bool in_set(std::string_view set, char c) noexcept {
  const bool inverted = set.front() == '!' || set.front() == '^';
  if (inverted) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != inverted;
}

/// Whether the element of the pattern at `at`, which is no star, matches `c`; `next` is the index behind it.
bool match_one(std::string_view pattern, std::size_t at, char c, std::size_t& next) noexcept {
  next = at + 1;
  if (pattern[at] == '?') return true;
  if (pattern[at] == '[') {
    if (const std::size_t end = end_of_set(pattern, at); end != none) {
      next = end;
      return in_set(pattern.substr(at + 1, end - at - 2), c);
    }
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) next = ++at + 1;
  return pattern[at] == c;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) noexcept {
  std::size_t p = 0, t = 0, star = none, star_text = 0;
  while (t < text.size()) {
    std::size_t next = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && match_one(pattern, p, text[t], next)) {
      p = next;
      ++t;
    } else if (star != none) {  // only the last star need ever take one more: what is before it has matched
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace assay
