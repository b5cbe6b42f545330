// SPDX-License-Identifier: Apache-2.0
#include "base/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace assay {
namespace {

constexpr std::string_view spaces = " \t\r\n";

[[noreturn]] void wrong(std::string_view item, const std::string& what) {
  std::string shown;
  for (const char c : item.substr(0, 60)) shown += c >= ' ' && c != 127 ? c : '?';
  throw_usage("'" + shown + "': " + what);
}

std::uint64_t number_of(std::string_view digits, std::string_view item) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > 12)
    wrong(item, "a bracket holds numbers and ranges like [01-16,20]");
  return value;
}

/// What "[01-03,7]" (given without its brackets) stands for.
std::vector<std::string> expand_bracket(std::string_view inside, std::string_view item) {
  std::vector<std::string> out;
  while (true) {
    const auto comma = std::min(inside.find(','), inside.size());
    const std::string_view part = inside.substr(0, comma);
    const auto dash = std::min(part.find('-'), part.size());
    const std::string_view low = part.substr(0, dash),
                           high = dash < part.size() ? part.substr(dash + 1) : low;
    const std::uint64_t first = number_of(low, item), last = number_of(high, item);
    if (last < first) wrong(item, "a range runs backwards");
    if (last - first >= hostlist_limit - out.size()) wrong(item, "stands for more than a million names");
    for (std::uint64_t n = first; n <= last; ++n) {
      std::string text = std::to_string(n);
      if (text.size() < low.size()) text.insert(0, low.size() - text.size(), '0');
      out.push_back(std::move(text));
    }
    if (comma == inside.size()) return out;
    inside.remove_prefix(comma + 1);
  }
}

void expand_item(std::string_view item, std::vector<std::string>& names) {
  std::vector<std::string> stems{""};
  for (std::string_view rest = item; !rest.empty();) {
    const auto open = std::min(rest.find('['), rest.size());
    for (std::string& stem : stems) stem += rest.substr(0, open);
    rest.remove_prefix(open);
    if (rest.empty()) break;
    const auto close = rest.find(']');
    if (close == std::string_view::npos) wrong(item, "a bracket is not closed");
    const auto endings = expand_bracket(rest.substr(1, close - 1), item);
    if (stems.size() * endings.size() > hostlist_limit) wrong(item, "stands for more than a million names");
    std::vector<std::string> grown;
    grown.reserve(stems.size() * endings.size());
    for (const std::string& stem : stems)
      for (const std::string& ending : endings) grown.push_back(stem + ending);
    stems = std::move(grown);
    rest.remove_prefix(close + 1);
  }
  if (names.size() + stems.size() > hostlist_limit)
    wrong(item, "the list stands for more than a million names");
  names.insert(names.end(), stems.begin(), stems.end());
}

/// Length of the item at the start of `text`: up to a comma or a space outside of brackets.
std::size_t item_length(std::string_view text) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') inside = true;
    if (c == ']') inside = false;
    if (c == '#' || spaces.find(c) != std::string_view::npos || (c == ',' && !inside)) return i;
  }
  return text.size();
}

/// A name without its digits, "r#n#x", and where each of its numbers begins and ends.
struct Shape {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> numbers;
};

Shape shape_of(const std::string& name) {
  constexpr std::string_view digits = "0123456789";
  constexpr std::size_t most_digits = 12;  // what expand_bracket() reads
  Shape shape;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t end = std::min(name.find_first_not_of(digits, i), name.size());
    if (end == i) {
      shape.text += name[i++];
      continue;
    }
    shape.text += end - i <= most_digits ? "#" : name.substr(i, end - i);
    if (end - i <= most_digits) shape.numbers.emplace_back(i, end);
    i = end;
  }
  return shape;
}

/// Of names of each shape, the number with the most values: the one that a bracket saves most for.
std::map<std::string, std::size_t> varying_numbers(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::set<std::string>>> values;
  for (const std::string& name : names) {
    const Shape shape = shape_of(name);
    auto& of_shape = values[shape.text];
    of_shape.resize(shape.numbers.size());
    for (std::size_t i = 0; i < shape.numbers.size(); ++i)
      of_shape[i].insert(
          name.substr(shape.numbers[i].first, shape.numbers[i].second - shape.numbers[i].first));
  }
  std::map<std::string, std::size_t> most;
  for (const auto& [text, numbers] : values)
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (i == 0 || numbers[i].size() >= numbers[most[text]].size()) most[text] = i;
  return most;
}

/// "[1-3,7]", or "7" where it is one; with leading zeros up to `width` digits.
std::string bracket_of(const std::set<std::uint64_t>& numbers, std::size_t width) {
  const auto text = [width](std::uint64_t number) {
    const std::string plain = std::to_string(number);
    return std::string(std::max(plain.size(), width) - plain.size(), '0') + plain;
  };
  std::string ranges;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first, next = std::next(first);
    while (next != numbers.end() && *next == *last + 1) last = next++;
    ranges += (ranges.empty() ? "" : ",") + text(*first) + (first == last ? "" : "-" + text(*last));
    first = next;
  }
  return numbers.size() == 1 ? ranges : "[" + ranges + "]";
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const char c = text.front();
    if (c == '#') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (c == ',' || spaces.find(c) != std::string_view::npos) {
      text.remove_prefix(1);
    } else {
      const std::size_t length = item_length(text);
      expand_item(text.substr(0, length), names);
      text.remove_prefix(length);
    }
  }
  return names;
}

std::string compress_hostlist(const std::vector<std::string>& names) {
  const auto varying = varying_numbers(names);
  std::string list;
  const auto add = [&list](const std::string& item) { list += (list.empty() ? "" : ",") + item; };
  // What is before and behind the number, and its digits where it has leading zeros.
  std::map<std::tuple<std::string, std::string, std::size_t>, std::set<std::uint64_t>> numbered;
  for (const std::string& name : names) {
    const Shape shape = shape_of(name);
    if (shape.numbers.empty()) {
      add(name);
      continue;
    }
    const auto [begin, end] = shape.numbers[varying.at(shape.text)];
    const std::size_t width = name[begin] == '0' && end - begin > 1 ? end - begin : 0;
    numbered[{name.substr(0, begin), name.substr(end), width}].insert(
        std::stoull(name.substr(begin, end - begin)));
  }
  for (const auto& [around, numbers] : numbered) {
    const auto& [before, behind, width] = around;
    add(before + bracket_of(numbers, width) + behind);
  }
  return list;
}

}  // namespace assay
