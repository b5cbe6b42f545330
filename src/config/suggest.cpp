// SPDX-License-Identifier: Apache-2.0
#include "config/suggest.hpp"

#include <algorithm>
#include <cstddef>

namespace assay {
namespace {

/// Levenshtein distance with one row of memory.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& typed, const std::vector<std::string>& candidates) {
  if (typed.size() > 200) return "";
  std::string best;
  std::size_t best_distance = typed.size() / 3 + 2;
  for (const std::string& candidate : candidates) {
    std::size_t distance = edit_distance(typed, candidate);
    // Half a name is a likely slip too: "expect" for "expect-nodes".
    if (typed.size() >= 4 && candidate.starts_with(typed)) distance = std::min<std::size_t>(distance, 1);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& typed, const std::vector<std::string>& candidates,
                         const std::string& prefix) {
  const std::string best = nearest_name(typed, candidates);
  return best.empty() ? "" : " (did you mean " + prefix + best + "?)";
}

std::string join(const std::vector<std::string>& texts, const std::string& separator) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += separator;
    out += text;
  }
  return out;
}

}  // namespace assay
