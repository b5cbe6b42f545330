// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// Most names that one list may stand for: a typing error must not fill the memory.
inline constexpr std::size_t hostlist_limit = 1'000'000;

/// The names of a list as Slurm writes it: "node[01-03,7],gpu5" is node01, node02, node03, node7 and gpu5.
/// Separated by commas or white space; # starts a comment up to the end of its line. Several brackets in a
/// name multiply; leading zeros keep the width. Globs (*, ?) pass through. Throws Error(usage) with one line
/// that names what is wrong.
std::vector<std::string> expand_hostlist(std::string_view text);

/// A short list that stands for the same names, in another order: names that differ in one number share a
/// bracket, node[01-03,07]. Where they have several, it is the one with the most values.
std::string compress_hostlist(const std::vector<std::string>& names);

}  // namespace assay
