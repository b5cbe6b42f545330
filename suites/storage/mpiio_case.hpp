// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// One file of all ranks through MPI-IO, records that alternate, collective or independent.
void run_mpiio(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
