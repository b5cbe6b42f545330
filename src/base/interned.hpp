// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <string>
#include <string_view>

namespace assay {

/// A text that many rows share: the process holds it once, for good, and each row eight bytes. Any thread may
/// make one.
class Interned {
 public:
  Interned() : text_(empty()) {}
  template <std::convertible_to<std::string_view> Text>
  Interned(const Text& text) : text_(held(text)) {}  // NOLINT(google-explicit-constructor)

  const std::string& str() const noexcept { return *text_; }
  operator const std::string&() const noexcept { return *text_; }  // NOLINT(google-explicit-constructor)

  friend bool operator==(const Interned& a, const Interned& b) noexcept { return a.text_ == b.text_; }
  friend std::strong_ordering operator<=>(const Interned& a, const Interned& b) noexcept {
    return *a.text_ <=> *b.text_;
  }
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const Interned& a, const Text& b) noexcept {
    return *a.text_ == std::string_view(b);
  }

 private:
  static const std::string* held(std::string_view text);
  /// Rows are made by the million before they are filled: these take no lock.
  static const std::string* empty() {
    static const std::string* const text = held({});
    return text;
  }

  const std::string* text_;
};

}  // namespace assay
