// SPDX-License-Identifier: Apache-2.0
// Results made up for tests: small, and with every kind of content that a file can hold.
#pragma once

#include <filesystem>
#include <string>

#include "results/model.hpp"
#include "results/writer.hpp"

namespace assay::results::example {

/// With the first `cases` cases planned.
Writer::Start start(int cases = 0);
/// Case number `i`: device cases, every fifth a link case with entities of its own, some skipped and empty.
/// `entities` devices (at most 4 of /entities are used in turn) and `samples` samples.
CaseBundle bundle(int i, std::size_t entities = 4, std::size_t samples = 10);
VerdictData verdict(int cases);

/// Writes `cases` cases and the verdict to `file` and returns what must come out of it (but for info.ended).
Results write(const std::filesystem::path& file, int cases);

/// A message naming the first field that differs, empty when equal; NaN equals NaN.
std::string difference(const Results& a, const Results& b);

}  // namespace assay::results::example
