// SPDX-License-Identifier: Apache-2.0
// Private to src/device: what the linked BLAS can be asked about itself. All look-ups are at run time, so the
// program links with any CBLAS.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace assay {

/// "SkylakeX", or "" when the library is not OpenBLAS.
std::string openblas_core();

/// Threads of the library from now on, where it can be told (OpenBLAS, MKL, BLIS). Returns how many it uses:
/// each is built with a most, such as 64 or 128.
int set_blas_threads(int threads);

/// Binds the library's own threads, one per CPU in order, where it can be told.
void bind_blas_threads(const std::vector<int>& cpus);

}  // namespace assay
