// SPDX-License-Identifier: Apache-2.0
// Suffixes of case names: NAME.pK is a repeat of NAME, NAME.cK measures it again to confirm a suspicion, and
// NAME.u1 holds what the ranks measured that did not finish NAME. The identity of a case across files is its
// name without them.
#pragma once

#include <cstddef>
#include <string>

namespace assay::results {

/// Position of a trailing ".<letter>digits" (letter 0: ".digits"); npos if there is none.
std::size_t numbered_suffix(const std::string& text, char letter) noexcept;

/// Name of a case without its suffixes .pK (repeat), .cK (retest) and .u1 (ranks that did not finish).
std::string base_name(const std::string& case_name);

/// NAME.u1, and whether a name has this suffix.
std::string unfinished_name(const std::string& case_name);
bool is_unfinished_name(const std::string& case_name) noexcept;

/// K of a retest case NAME.cK, 0 for others.
int retest_number(const std::string& case_name);

}  // namespace assay::results
