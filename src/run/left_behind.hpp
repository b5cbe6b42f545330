// SPDX-License-Identifier: Apache-2.0
// What the results of a launch tell about its nodes, also where nobody was left to close them.
#pragma once

#include <optional>
#include <string>

#include "results/model.hpp"
#include "run/launcher.hpp"

namespace assay {

/// Who was lost in the launch that wrote `r`, and whether ranks were stuck: not what it took over.
void take_losses(Attempt& a, const results::Results& r);

/// The same of a partial directory, `closing` if its verdict is there already. The collector ran on `host`,
/// and is gone; it is to blame only if the run had not begun to end. Returns its loss then, which nobody is
/// left to write.
std::optional<results::EventRow> take_left_behind(Attempt& a, const results::Results& r,
                                                  const std::string& host, bool closing);

}  // namespace assay
