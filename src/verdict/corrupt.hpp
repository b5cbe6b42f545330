// SPDX-License-Identifier: Apache-2.0
// Findings about wrong values and digests that disagree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// 0x and sixteen digits.
std::string hex(std::uint64_t value);
/// "node0/gpu3 (rank 3)".
std::string with_rank(const Judgement& j, std::int32_t row);
/// FAIL, `corrupt`, about the entity of a case (`path`); `count` of wrong values, 0 if unknown.
void add_corrupt(Judgement& j, std::int32_t row, const std::string& path, const std::string& evidence,
                 const std::string& text, std::int64_t count);

}  // namespace assay::verdict
