// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::report {

using Rgb = std::array<std::uint8_t, 3>;

/// A picture of `width` columns whose points are places in `palette`, as a data: URI (PNG, not compressed).
std::string png_uri(std::size_t width, const std::vector<std::uint8_t>& points,
                    const std::vector<Rgb>& palette);

}  // namespace assay::report
