// SPDX-License-Identifier: Apache-2.0
#include "results/case_name.hpp"

#include <cctype>

#include "results/model.hpp"

namespace assay::results {

std::size_t numbered_suffix(const std::string& text, char letter) noexcept {
  std::size_t i = text.size();
  while (i > 0 && std::isdigit(static_cast<unsigned char>(text[i - 1])) != 0) --i;
  if (i == text.size() || i == 0) return std::string::npos;
  if (letter != 0) {
    if (text[i - 1] != letter) return std::string::npos;
    --i;
  }
  return i > 0 && text[i - 1] == '.' ? i - 1 : std::string::npos;
}

std::string base_name(const std::string& case_name) {
  std::string base = case_name;
  for (const char letter : {'c', 'p'}) {
    const auto at = numbered_suffix(base, letter);
    if (at != std::string::npos) base.resize(at);
  }
  return base;
}

std::string unfinished_name(const std::string& case_name) { return case_name + ".u1"; }

bool is_unfinished_name(const std::string& case_name) noexcept {
  return numbered_suffix(case_name, 'u') != std::string::npos;
}

std::string finished_name(const std::string& case_name) {
  return case_name.substr(0, numbered_suffix(case_name, 'u'));
}

int retest_number(const std::string& case_name) {
  const auto at = numbered_suffix(case_name, 'c');
  if (at == std::string::npos || case_name.size() - at > 8) return 0;
  return std::stoi(case_name.substr(at + 2));
}

bool is_retest(const std::string& case_name) noexcept {
  return numbered_suffix(case_name, 'c') != std::string::npos;
}

}  // namespace assay::results
