// SPDX-License-Identifier: Apache-2.0
#include "config/option.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <type_traits>

#include "base/error.hpp"
#include "base/units.hpp"
#include "config/parse_value.hpp"
#include "config/suggest.hpp"

namespace assay {
namespace {

using Value = OptionValues::Value;

std::string quoted(const std::string& text) {
  std::string out(1, '\'');
  return out.append(text).append(1, '\'');
}

template <typename Number>
Number parse_whole(const std::string& text, const char* what) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) throw_usage(quoted(text) + " is out of range");
  if (error != std::errc{} || rest != end) throw_usage(quoted(text) + " is no " + what);
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) throw_usage(quoted(text) + " is no finite number");
  }
  return value;
}

bool parse_flag(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw_usage(quoted(text) + " is neither true nor false");
}

void check_allowed(const OptionSpec& spec, const std::string& text) {
  if (std::ranges::find(spec.allowed, text) != spec.allowed.end()) return;
  throw_usage(quoted(text) + " is not one of " + join(spec.allowed) + did_you_mean(text, spec.allowed));
}

std::vector<std::string> parse_list(const OptionSpec& spec, const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (true) {
      const std::size_t comma = text.find(',', begin);
      std::string item = text.substr(begin, comma == std::string::npos ? comma : comma - begin);
      if (item.empty()) throw_usage("empty item in " + quoted(text));
      if (spec.kind == OptionKind::choices) check_allowed(spec, item);
      // A choice holds once, however often it is named. What a repeated item of a list means is up to who
      // reads it.
      const bool repeated = spec.kind == OptionKind::choices && std::ranges::find(items, item) != items.end();
      if (!repeated) items.push_back(std::move(item));
      if (comma == std::string::npos) break;
      begin = comma + 1;
    }
  }
  const std::set<std::string> different(items.begin(), items.end());
  if (!spec.alone.empty() && different.contains(spec.alone) && different.size() > 1)
    throw_usage(quoted(spec.alone) + " goes with no other value");
  return items;
}

/// A value as the unit of its option writes it.
std::string written(const OptionSpec& spec, double value) {
  if (spec.kind == OptionKind::bytes) return format_bytes(static_cast<std::uint64_t>(value));
  return spec.kind == OptionKind::seconds ? format_seconds(value) : fmt::format("{}", value);
}

void check_range(const OptionSpec& spec, const std::string& text, double value) {
  if (!spec.range || (value >= spec.range->least && value <= spec.range->most)) return;
  const std::string least = written(spec, spec.range->least);
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  const bool has_units = spec.kind == OptionKind::bytes || spec.kind == OptionKind::seconds;
  std::string what = std::isinf(spec.range->most) ? fmt::format("{} is less than {}", quoted(text), least)
                                                  : fmt::format("{} is not between {} and {}", quoted(text),
                                                                least, written(spec, spec.range->most));
  if (bare && has_units) what += "; is the unit missing?";
  throw_usage(what);
}

Value in_range(const OptionSpec& spec, const std::string& text, Value value) {
  std::visit(
      [&](const auto& v) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>)
          check_range(spec, text, static_cast<double>(v));
      },
      value);
  return value;
}

Value parse_one(const OptionSpec& spec, const std::string& text) {
  if (text.empty()) throw_usage("empty value");
  switch (spec.kind) {
    case OptionKind::flag: return parse_flag(text);
    case OptionKind::integer: return in_range(spec, text, parse_whole<std::int64_t>(text, "whole number"));
    case OptionKind::number: return in_range(spec, text, parse_whole<double>(text, "number"));
    case OptionKind::bytes: return in_range(spec, text, parse_bytes(text));
    case OptionKind::seconds: return in_range(spec, text, parse_seconds(text));
    case OptionKind::choice: check_allowed(spec, text); return text;
    case OptionKind::path:
      if (text == "-") throw_usage("'-' stands for no stream here; a file of that name is ./-");
      return text;
    case OptionKind::text: return text;
    case OptionKind::list:
    case OptionKind::choices: return parse_list(spec, {text});
  }
  throw Error(ErrorKind::internal, "option kind without a parser");
}

/// The value under `name` when it is there and of type T; a wrong name or type is a bug of the caller.
template <typename T>
T value_of(const std::map<std::string, Value>& values, const std::string& name) {
  const auto it = values.find(name);
  if (it == values.end()) throw Error(ErrorKind::internal, "option " + name + " is not in the option table");
  if (std::holds_alternative<std::monostate>(it->second)) return T{};
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) throw Error(ErrorKind::internal, "option " + name + " is read with another type");
  return *value;
}

}  // namespace

Value parse_option_value(const OptionSpec& spec, const std::vector<std::string>& texts) {
  const bool is_list = spec.kind == OptionKind::list || spec.kind == OptionKind::choices;
  if (texts.empty()) {
    if (!spec.default_text.empty()) return parse_one(spec, spec.default_text);
    if (spec.kind == OptionKind::flag) return false;
    return std::monostate{};
  }
  if (spec.kind == OptionKind::flag) return parse_flag(texts.back());
  if (is_list || spec.repeatable) {
    // An option that may be repeated but is no list keeps its texts whole: a comma may be part of one.
    if (is_list) return parse_list(spec, texts);
    return texts;
  }
  if (texts.size() > 1) throw_usage("given " + std::to_string(texts.size()) + " times");
  return parse_one(spec, texts.front());
}

void OptionValues::set(const OptionSpec& spec, const std::vector<std::string>& texts, OptionSource source) {
  try {
    values_[spec.name] = parse_option_value(spec, texts);
    uses_[spec.name] = spec.use;
    sources_[spec.name] = source;
  } catch (const Error& e) {
    throw Error(e.kind(), "--" + spec.name + ": " + e.what());
  }
}

void OptionValues::unset(const std::string& name) {
  values_[name] = std::monostate{};
  sources_.erase(name);
}

bool OptionValues::has(const std::string& name) const {
  const auto it = values_.find(name);
  return it != values_.end() && !std::holds_alternative<std::monostate>(it->second);
}
OptionUse OptionValues::use(const std::string& name) const {
  const auto at = uses_.find(name);
  return at == uses_.end() ? OptionUse::measurement : at->second;
}
OptionSource OptionValues::source(const std::string& name) const {
  const auto at = sources_.find(name);
  return at == sources_.end() ? OptionSource::command_line : at->second;
}
bool OptionValues::flag(const std::string& name) const { return value_of<bool>(values_, name); }
std::int64_t OptionValues::integer(const std::string& name) const {
  return value_of<std::int64_t>(values_, name);
}
double OptionValues::number(const std::string& name) const { return value_of<double>(values_, name); }
std::uint64_t OptionValues::bytes(const std::string& name) const {
  return value_of<std::uint64_t>(values_, name);
}
std::string OptionValues::text(const std::string& name) const { return value_of<std::string>(values_, name); }
std::vector<std::string> OptionValues::list(const std::string& name) const {
  return value_of<std::vector<std::string>>(values_, name);
}

}  // namespace assay
