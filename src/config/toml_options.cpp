// SPDX-License-Identifier: Apache-2.0
// The only file that includes toml++ for options. CLI11 has a TOML reader of its own, which ignores files set
// on a subcommand and cannot parse dotted names.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/system.hpp"
#include "config/config.hpp"
#include "config/parse_value.hpp"
#include "config/suggest.hpp"

namespace assay {
namespace {

using Texts = std::map<std::string, std::vector<std::string>>;

const char* type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number";
    case toml::node_type::boolean: return "a boolean";
    default: return "a date or time";
  }
}

/// What a TOML value must be for an option of this kind, for the message.
const char* wanted(OptionKind kind) {
  switch (kind) {
    case OptionKind::flag: return "true or false";
    case OptionKind::integer: return "an integer";
    case OptionKind::number: return "a number";
    case OptionKind::bytes: return "a size, e.g. \"64MiB\" or 4096";
    case OptionKind::seconds: return "a duration, e.g. \"15m\" or 90";
    case OptionKind::list:
    case OptionKind::choices: return "an array of strings";
    default: return "a string";
  }
}

bool accepts(OptionKind kind, const toml::node& node) {
  switch (kind) {
    case OptionKind::flag: return node.is_boolean();
    case OptionKind::integer: return node.is_integer();
    case OptionKind::number: return node.is_number();
    case OptionKind::bytes: return node.is_integer() || node.is_string();
    case OptionKind::seconds: return node.is_number() || node.is_string();
    case OptionKind::list:
    case OptionKind::choices: return node.is_string() || node.is_integer();
    default: return node.is_string();
  }
}

/// Reads one file; keeps its position for messages.
class Reader {
 public:
  Reader(const std::string& file, const std::vector<OptionSpec>& specs) : file_(file), specs_(specs) {
    for (const OptionSpec& spec : specs) {
      if (!spec.hidden) names_.push_back(spec.name);
    }
  }

  Texts read(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (const toml::table* section = node.as_table()) {
        for (const auto& [inner_key, inner] : *section) add(name + "." + std::string(inner_key.str()), inner);
      } else {
        add(name, node);
      }
    }
    return std::move(texts_);
  }

 private:
  [[noreturn]] void fail(const toml::node& node, const std::string& key, const std::string& what) const {
    throw_usage(fmt::format("{}:{}: {}: {}", file_, node.source().begin.line, key, what));
  }

  void add(const std::string& key, const toml::node& node) {
    const auto spec = std::ranges::find(specs_, key, &OptionSpec::name);
    if (spec == specs_.end()) fail(node, key, "unknown option" + did_you_mean(key, names_));
    if (key == "config") fail(node, key, "a configuration file cannot name another one");
    std::vector<std::string> texts;
    const bool many = spec->kind == OptionKind::list || spec->kind == OptionKind::choices || spec->repeatable;
    if (const toml::array* array = node.as_array(); array != nullptr && many) {
      for (const toml::node& element : *array) texts.push_back(text_of(*spec, element));
      if (texts.empty()) fail(node, key, "empty array");
    } else {
      texts.push_back(text_of(*spec, node));
    }
    try {
      parse_option_value(*spec, texts);
    } catch (const Error& e) {
      fail(node, key, e.what());
    }
    if (!texts_.emplace(key, std::move(texts)).second) fail(node, key, "given twice");
  }

  std::string text_of(const OptionSpec& spec, const toml::node& node) const {
    if (!accepts(spec.kind, node)) {
      fail(node, spec.name, fmt::format("is {}, must be {}", type_name(node), wanted(spec.kind)));
    }
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
    if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
    return node.as_boolean()->get() ? "true" : "false";
  }

  const std::string& file_;
  const std::vector<OptionSpec>& specs_;
  std::vector<std::string> names_;
  Texts texts_;
};

}  // namespace

Texts parse_toml_options(const std::string& text, const std::string& file,
                         const std::vector<OptionSpec>& specs) {
  try {
    const toml::table table = toml::parse(text, file);
    return Reader(file, specs).read(table);
  } catch (const toml::parse_error& e) {
    throw_usage(fmt::format("{}:{}: {}", file, e.source().begin.line, e.description()));
  }
}

}  // namespace assay
