// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// Collective: rank 0 prints one line; all ranks return the exit code of the error.
ExitCode report_error(Communicator& world, const Error& e);

}  // namespace assay
