// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/worker_link.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// Collective on the launch: where some rank's supervisor cannot read the file in `folder` that leads to the
/// collector, all get its content, key included, over MPI. Else nothing is sent. Throws Error(internal).
void tell_address(Communicator& launch, supervisor::WorkerLink& link, const std::string& folder);

}  // namespace assay
