// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/relauncher.hpp"

namespace assay {

/// `assay plan` on the ranks that `assay run` would start. `how.arguments` are those of `plan`; it is
/// launched once.
ExitCode plan_launched(const Relaunch& how);

}  // namespace assay
