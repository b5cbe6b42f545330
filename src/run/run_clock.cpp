// SPDX-License-Identifier: Apache-2.0
#include "run/run_clock.hpp"

#include <unistd.h>

#include <string>

#include "base/clock.hpp"
#include "base/process_stat.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

/// Since Open MPI's launcher began to start, else this process.
double launcher_age_s() {
  const bool launcher = !launcher_parent(false).empty();
  return process_start_s(process_age_s(launcher ? std::to_string(getppid()) : "self"),
                         static_cast<int>(launched_ranks()));
}

}  // namespace

std::size_t launched_ranks() {
  const int size = launch_environment().size;
  return size > 0 ? static_cast<std::size_t>(size) : 1;
}

RunClock::RunClock() : launched_at_s_(now_s() - launcher_age_s()) {}

void RunClock::begin(int segment, double spent_s) {
  from_s_ = (segment == 1 ? launched_at_s_ : now_s()) - spent_s;
  start_s_ = now_s() - launched_at_s_;
}

double RunClock::elapsed_s() const { return now_s() - from_s_; }

}  // namespace assay
