// SPDX-License-Identifier: Apache-2.0
// Suffixes of case names: NAME.pK is a repeat of NAME, NAME.cK measures it again to confirm a suspicion, and
// NAME.u1 holds what the ranks measured that did not finish NAME. The identity of a case across files is its
// name without .pK and .cK; nothing is compared with a NAME.u1.
#pragma once

#include <cstddef>
#include <string>

namespace assay::results {

/// Position of a trailing ".<letter>digits" (letter 0: ".digits"); npos if there is none.
std::size_t numbered_suffix(const std::string& text, char letter) noexcept;

/// Name of a case without its suffixes .pK (repeat) and .cK (retest).
std::string base_name(const std::string& case_name);

/// NAME.u1, whether a name has this suffix, and NAME of NAME.u1 (a name without the suffix stays).
std::string unfinished_name(const std::string& case_name);
bool is_unfinished_name(const std::string& case_name) noexcept;
std::string finished_name(const std::string& case_name);

/// K of a retest case NAME.cK, 0 for others.
int retest_number(const std::string& case_name);

}  // namespace assay::results
