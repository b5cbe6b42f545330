// SPDX-License-Identifier: Apache-2.0
// How faults are written, "kind:key=value{,key=value}", for `run --inject` and `simulate --fault`: each has
// kinds and keys of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace assay::fault_text {

std::vector<std::string> split(const std::string& text, char separator);
/// Throws Error(usage) "key=value: wanted".
[[noreturn]] void bad(const std::string& key, const std::string& value, const std::string& wanted);
double real(const std::string& key, const std::string& text);
/// Above 0 and below 1, or at most 1 with `one_allowed`.
double fraction(const std::string& key, const std::string& text, bool one_allowed);
/// `text` if it is allowed.
std::string one_of(const std::string& key, const std::string& text, const std::vector<std::string>& allowed);

/// The word before the colon. Throws Error(usage) for control characters.
std::string kind_word(const std::string& text);
/// The row of `kinds` (each with a `name`) that is called `name`; throws Error(usage) with all names.
template <typename Kind>
const Kind& find_kind(const std::vector<Kind>& kinds, const std::string& name);
[[noreturn]] void no_kind(const std::string& name, const std::vector<std::string>& names);

/// Calls `set` with each key and value in turn and returns the keys. Throws Error(usage) for a key that
/// `kind` does not have, one without a value, and one given twice.
std::vector<std::string> each_field(
    const std::string& text, const std::string& kind, const std::vector<std::string>& keys,
    const std::function<void(const std::string& key, const std::string& value)>& set);
bool contains(const std::vector<std::string>& names, const std::string& name);

template <typename Kind>
const Kind& find_kind(const std::vector<Kind>& kinds, const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  no_kind(name, names);
}

}  // namespace assay::fault_text
