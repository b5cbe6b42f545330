// SPDX-License-Identifier: Apache-2.0
// The system calls that reading open files needs, and no others.
#pragma once

#include <string>

namespace assay {

/// From now on this process may read and write what it has open, use memory, and end. Opening, making,
/// renaming or removing a file, and other calls that reading does not need fail with EPERM; sockets, new
/// processes and programs end it with SIGSYS. False where the kernel or this build has no such filter.
bool install_reading_filter() noexcept;

/// "libseccomp 2.5.4", or why there is none.
std::string reading_filter_version();

}  // namespace assay
