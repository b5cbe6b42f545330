// SPDX-License-Identifier: Apache-2.0
#include "topology/sysfs.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/system.hpp"

namespace assay::sysfs {
namespace fs = std::filesystem;

std::string clean(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n' || c == '\0') break;
    result += (c >= ' ' && c <= '~') ? c : (c == '\t' ? ' ' : '?');
  }
  const auto first = result.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return result.substr(first, result.find_last_not_of(' ') - first + 1);
}

std::string line(const std::string& path) { return clean(read_text(path).value_or("")); }

double leading_number(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  return error == std::errc{} ? value : std::numeric_limits<double>::quiet_NaN();
}

double number(const std::string& path) { return leading_number(line(path)); }

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> numbered(const std::string& directory, const std::string& prefix) {
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& name : entries(directory)) {
    if (!name.starts_with(prefix)) continue;
    int index = 0;
    const char* last = name.data() + name.size();
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), last, index);
    if (error == std::errc{} && end == last) found.emplace_back(index, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& entry : found) names.push_back(std::move(entry.second));
  return names;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string link_name(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string{} : target.filename().string();
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? std::string{} : target.string();
}

bool is_pci_function(const std::string& name) {
  const auto colon = name.find(':');
  if (colon == std::string::npos || colon < 4 || colon > 8) return false;
  const bool hex = std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(colon),
                               [](unsigned char c) { return std::isxdigit(c) != 0; });
  return hex && name.size() >= colon + 8 && name[colon + 3] == ':' && name[colon + 6] == '.';
}

std::vector<int> cpu_list(const std::string& path) {
  try {
    return parse_cpu_list(line(path));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace assay::sysfs
