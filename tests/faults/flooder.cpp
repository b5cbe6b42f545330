// SPDX-License-Identifier: Apache-2.0
// flooder PORT PER_SECOND SECONDS: prints how many connections it began, how many stood, and in how many
// seconds, until nobody listened.
#include <cstdio>
#include <cstdlib>

#include "tests/support/connection_flood.hpp"

int main(int argc, char** argv) {
  if (argc != 4) return 4;
  const auto done = assay::testing_support::flood(static_cast<std::uint16_t>(std::atoi(argv[1])),
                                                  std::atoi(argv[2]), std::atof(argv[3]));
  std::printf("%ld %ld %.3f\n", done.tried, done.made, done.seconds);
  return 0;
}
