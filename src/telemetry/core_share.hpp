// SPDX-License-Identifier: Apache-2.0
// Whether the kernel let this process run: a slow core is told from one that others use, too.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace assay {

/// Share of the time in which threads of this process were ready to run that they ran, from construction on.
/// Other processes on their cores, time slices and the CPU quota of a cgroup take the rest; waiting for
/// messages or storage does not count. From /proc/<pid>/task/*/schedstat.
class CoreShare {
 public:
  explicit CoreShare(std::string process = "/proc/self");

  /// Of the most disturbed among the threads that were ready for at least half as long as the busiest one:
  /// threads that share the work wait for it. NaN where the kernel does not tell, and for less than
  /// `least_ready_s`.
  double share() const;

  static constexpr double least_ready_s = 0.05;

 private:
  struct Times {
    double ran_s = 0, waited_s = 0;
  };
  std::map<std::string, Times> read() const;  ///< by thread

  std::string process_;
  std::map<std::string, Times> begin_;
};

/// The process of another program with most processor time while `wait` runs that has a thread running on one
/// of `cpus`: "make (pid 4711)". Empty when none is visible.
std::string busiest_other(const std::function<void()>& wait, const std::vector<int>& cpus,
                          const std::string& proc = "/proc");

}  // namespace assay
