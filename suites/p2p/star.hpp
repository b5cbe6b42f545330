// SPDX-License-Identifier: Apache-2.0
// Copies between one GPU of a node and all its others at once, each GPU in the centre in turn.
#pragma once

#include <vector>

#include "suite/suite.hpp"

namespace assay::p2p {

inline constexpr const char* one_to_all = "one-to-all";  ///< the centre writes to all others
inline constexpr const char* all_to_one = "all-to-one";  ///< all others write to the centre

bool is_star(const Case& c);
/// From `standard` up or by name (p2p.modes), for the transports that copy between GPUs.
std::vector<Case> plan_stars(const PlanInput& input);
void run_star(const Case& c, Context& context);

}  // namespace assay::p2p
