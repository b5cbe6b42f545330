// SPDX-License-Identifier: Apache-2.0
// What a file can say in good form and yet cannot be.
#pragma once

#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::results {

/// Throws Error(data) naming the first unit or kind of part that the schema does not know. A file of a later
/// minor version may have new ones.
void check_words(const Results& results, const std::string& schema_version);

/// Values that no run writes, one line per place: blocks below 0 or beyond a million, samples of one part
/// that decrease, ends before their beginnings, parts or samples that are there twice. They leave a file
/// readable and its verdict INCONCLUSIVE.
std::vector<std::string> doubtful_content(const Results& results);

/// Required metrics of completed cases with taken samples that are no finite numbers; of these the verdict
/// has lines of its own.
std::vector<std::string> broken_samples(const Results& results);

}  // namespace assay::results
