// SPDX-License-Identifier: Apache-2.0
#include "results/iso_time.hpp"

#include <cmath>

#include "base/clock.hpp"

namespace assay::results {

std::optional<std::int64_t> unix_seconds(const std::string& iso) {
  constexpr std::size_t length = 20;  // without a fraction or an offset
  const auto seconds =
      iso.size() == length && iso[10] == 'T' && iso.back() == 'Z' ? parse_iso(iso) : std::nullopt;
  if (!seconds) return std::nullopt;
  return std::llround(*seconds);
}

}  // namespace assay::results
