// SPDX-License-Identifier: Apache-2.0
// A downstream program: judges the results file named on its command line and leaves with the run's exit
// code.
#include <cstdio>
#include <exception>

#include "results/reader.hpp"
#include "verdict/verdict.hpp"

int main(int argc, char** argv) try {
  const auto results = assay::results::load(argc > 1 ? argv[1] : "");
  const auto verdict = assay::verdict::judge(results, assay::verdict::options_from(results));
  std::printf("%s\n", verdict.state.c_str());
  return verdict.exit_code;
} catch (const std::exception& e) {
  std::printf("cannot judge: %s\n", e.what());
  return 4;
}
