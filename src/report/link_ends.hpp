// SPDX-License-Identifier: Apache-2.0
// Links that FAIL, and the parts that FAIL for no other reason than being their ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::report {

/// Both ends of a link (node07/gpu0>node08/gpu0); any other part alone.
std::vector<std::string> ends_of(const std::string& name);
/// The node of a part, or the node itself.
std::string node_of(const std::string& part);

struct LinkEnds {
  std::size_t links = 0;        ///< that FAIL
  std::set<std::int32_t> only;  ///< rows of /entities: nodes and parts that FAIL as ends of these alone
  std::size_t nodes = 0;        ///< of these
};

/// From the findings: a part is an end alone where no other FAIL names it, its node or a part of it. Empty
/// where a FAIL names no part.
LinkEnds link_ends(const results::Results& results, const results::VerdictData& verdict);

/// "2 links FAIL"
std::string links_words(const LinkEnds& ends);

}  // namespace assay::report
