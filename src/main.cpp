// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

#include "cli/cli.hpp"

namespace {

/// Where a standard stream is closed, the next file that is opened gets its number, and what is printed lands
/// in it. Nothing is said if this fails: there is nowhere to say it.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      return;  // the lowest free number is this one
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  return assay::cli_main(argc, argv);
}
