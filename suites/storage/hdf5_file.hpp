// SPDX-License-Identifier: Apache-2.0
// Parallel HDF5 beside the serial one of this program. Debian gives the symbols of its builds versions of
// their own (HDF5_MPI_..., HDF5_SERIAL_...), so that both can be in a process; other builds are not looked
// for.
#pragma once

#include <memory>
#include <string>

#include "suites/storage/shared_file.hpp"
#include "suites/storage/transfer.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

/// Empty where parallel HDF5 for this MPI can be loaded; else why not.
std::string why_no_parallel_hdf5();

/// Collective. A data set of bytes, without chunks and fill values, in the file `path`, which is overwritten.
std::unique_ptr<SharedFile> open_hdf5(Communicator& group, const std::string& path, const Layout& layout,
                                      bool collective);

}  // namespace assay::storage
