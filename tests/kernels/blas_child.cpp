// SPDX-License-Identifier: Apache-2.0
// What a program that selects its BLAS kernels sees. Printed by the process that is left after a
// re-execution.
#include <sys/prctl.h>

#include <cstdio>

#include "device/device.hpp"

int main(int argc, char** argv) {
  assay::select_blas_core(argv);
  const auto info = assay::blas_info();
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  std::printf("core=%s mend=%s. arguments=%d name=%s\n", info.at("core").c_str(), info.at("mend").c_str(),
              argc - 1, name);
  return 0;
}
