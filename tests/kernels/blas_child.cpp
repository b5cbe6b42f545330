// SPDX-License-Identifier: Apache-2.0
// What a program that selects its BLAS kernels sees. Printed by the process that is left after a
// re-execution.
#include <cstdio>

#include "device/device.hpp"

int main(int argc, char** argv) {
  assay::select_blas_core(argv);
  const auto info = assay::blas_info();
  std::printf("core=%s mend=%s. arguments=%d\n", info.at("core").c_str(), info.at("mend").c_str(), argc - 1);
  return 0;
}
