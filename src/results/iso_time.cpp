// SPDX-License-Identifier: Apache-2.0
#include "results/iso_time.hpp"

#include <ctime>

namespace assay::results {

std::optional<std::int64_t> unix_seconds(const std::string& iso) {
  std::tm tm{};
  const char* end = ::strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%SZ", &tm);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return ::timegm(&tm);
}

}  // namespace assay::results
