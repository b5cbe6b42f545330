// SPDX-License-Identifier: Apache-2.0
#include "run/report_error.hpp"

#include <cstdio>

namespace assay {

ExitCode report_error(Communicator& world, const Error& e) {
  if (world.rank() == 0) std::fprintf(stderr, "assay: %s\n", e.what());
  world.barrier();
  return e.exit_code();
}

}  // namespace assay
