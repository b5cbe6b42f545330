// SPDX-License-Identifier: Apache-2.0
// flooder PORT PER_SECOND SECONDS: prints how many connections it made, in how many seconds, and 1 if it was refused in the end.
#include <cstdio>
#include <cstdlib>

#include "tests/support/connection_flood.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 4;
  const auto done = assay::testing_support::flood(static_cast<std::uint16_t>(std::atoi(argv[1])), std::atoi(argv[2]), std::atof(argv[3]));
  std::printf("%ld %.3f %d\n", done.made, done.seconds, done.refused ? 1 : 0);
  return 0;
}
