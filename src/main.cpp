// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <initializer_list>

#include "base/bounds.hpp"
#include "base/end_signals.hpp"
#include "base/exit_code.hpp"
#include "cli/cli.hpp"

namespace {

/// Where a standard stream is closed, the next file that is opened gets its number, and what is printed lands
/// in it. Nothing is said if this fails: there is nowhere to say it.
void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
      return;  // the lowest free number is this one
}

/// OpenBLAS starts its threads while it is loaded: where `ulimit -v` does not allow that, it ends the process
/// or waits for ever. Runs before libraries are initialized, so it calls nothing but the C library.
void require_address_space() {
  constexpr std::uint64_t libraries = 128U << 20;
  const std::uint64_t needed = libraries + assay::stacks_bytes(), free = assay::free_address_space();
  if (free >= needed) return;
  char text[200];
  const int length = std::snprintf(text, sizeof text,
                                   "assay: the limit of the address space is %llu KiB too small to load the "
                                   "libraries: raise it (ulimit -v)\n",
                                   static_cast<unsigned long long>((needed - free + 1023) >> 10));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) != length) _exit(5);
  _exit(static_cast<int>(assay::ExitCode::usage));
}

constexpr std::array signals_of_terminal = {SIGINT, SIGHUP};
std::array<bool, signals_of_terminal.size()> ignored{};

/// Libraries of networks (psm2) handle all signals from their initialization on, also those that this process
/// was started to ignore (nohup).
void note_ignored() {
  for (std::size_t i = 0; i < ignored.size(); ++i) ignored[i] = assay::ignores(signals_of_terminal[i]);
}

void ignore_again() {
  for (std::size_t i = 0; i < ignored.size(); ++i)
    if (ignored[i]) std::signal(signals_of_terminal[i], SIG_IGN);
}

using Start = void (*)();
[[gnu::section(".preinit_array"), gnu::used]] const Start before_libraries[] = {require_address_space,
                                                                                note_ignored};

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  ignore_again();
  return assay::cli_main(argc, argv);
}
