// SPDX-License-Identifier: Apache-2.0
// Private to src/device.
#pragma once

#include <memory>

#include "device/team.hpp"
#include "device/train_ops.hpp"

namespace assay {

/// `team` outlives the result.
std::unique_ptr<TrainOps> make_host_train_ops(Team& team);

}  // namespace assay
