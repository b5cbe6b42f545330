// SPDX-License-Identifier: Apache-2.0
#include "verdict/agreement.hpp"

#include <algorithm>
#include <numeric>

#include "verdict/constants.hpp"

namespace assay::verdict {

double message_bytes(const Series& s) {
  const auto it = s.first->parameters.find("bytes");
  return it != s.first->parameters.end() && it->is_number() ? it->get<double>() : 0;
}

std::vector<bool> agreeing(std::span<const SizedCase> cases) {
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return cases[a].bytes < cases[b].bytes; });
  std::vector<bool> agree(cases.size(), false);
  // From one end on, as far as the share holds. Cases of one size are taken together.
  const auto from_end = [&] {
    std::size_t slow = 0, last = 0;
    int samples = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const SizedCase& c = cases[order[i]];
      slow += c.slow ? 1 : 0;
      samples += c.slow ? c.samples : 0;
      const bool whole = i + 1 == order.size() || cases[order[i + 1]].bytes != c.bytes;
      if (whole && slow >= constants::agreeing_cases && samples >= constants::peers_small_samples &&
          static_cast<double>(slow) >= constants::agreeing_share * static_cast<double>(i + 1))
        last = i + 1;
    }
    for (std::size_t i = 0; i < last; ++i) agree[order[i]] = agree[order[i]] || cases[order[i]].slow;
  };
  from_end();
  std::reverse(order.begin(), order.end());
  from_end();
  return agree;
}

}  // namespace assay::verdict
