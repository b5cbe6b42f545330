// SPDX-License-Identifier: Apache-2.0
#include "telemetry/core_share.hpp"

#include <algorithm>
#include <limits>
#include <sstream>

#include "base/process_stat.hpp"
#include "base/system.hpp"
#include "topology/sysfs.hpp"

namespace assay {

CoreShare::CoreShare(std::string process) : process_(std::move(process)), begin_(read()) {}

std::map<std::string, CoreShare::Times> CoreShare::read() const {
  std::map<std::string, Times> times;
  for (const std::string& thread : sysfs::numbered(process_ + "/task", "")) {
    std::istringstream text(read_text(process_ + "/task/" + thread + "/schedstat").value_or(""));
    double ran_ns = 0, waited_ns = 0;
    if (text >> ran_ns >> waited_ns) times[thread] = {1e-9 * ran_ns, 1e-9 * waited_ns};
  }
  return times;
}

double CoreShare::share() const {
  std::vector<Times> spent;
  double busiest_s = 0;
  for (auto [thread, times] : read()) {
    if (const auto before = begin_.find(thread); before != begin_.end()) {
      times.ran_s -= before->second.ran_s;
      times.waited_s -= before->second.waited_s;
    }
    spent.push_back(times);
    busiest_s = std::max(busiest_s, times.ran_s + times.waited_s);
  }
  if (busiest_s < least_ready_s) return std::numeric_limits<double>::quiet_NaN();
  double least = 1;
  for (const Times& t : spent)
    if (const double ready_s = t.ran_s + t.waited_s; ready_s >= busiest_s / 2)
      least = std::min(least, t.ran_s / ready_s);
  return least;
}

namespace {

std::map<std::string, std::uint64_t> ticks_of_others(const std::string& proc) {
  const std::string own = read_text(proc + "/self/comm").value_or("");
  std::map<std::string, std::uint64_t> ticks;
  for (const std::string& process : sysfs::numbered(proc, ""))
    if (const auto stat = process_stat(process, proc);
        stat && read_text(proc + "/" + process + "/comm").value_or("") != own)
      ticks[process] = stat->cpu_ticks;
  return ticks;
}

bool runs_on(const std::string& process, const std::vector<int>& cpus, const std::string& proc) {
  for (const std::string& thread : sysfs::numbered(proc + "/" + process + "/task", "")) {
    const auto stat = process_stat(process + "/task/" + thread, proc);
    if (stat && stat->state == 'R' && std::find(cpus.begin(), cpus.end(), stat->cpu) != cpus.end())
      return true;
  }
  return false;
}

}  // namespace

std::string busiest_other(const std::function<void()>& wait, const std::vector<int>& cpus,
                          const std::string& proc) {
  const auto before = ticks_of_others(proc);
  wait();
  std::vector<std::pair<std::uint64_t, std::string>> spent;
  for (const auto& [process, ticks] : ticks_of_others(proc))
    if (const auto at = before.find(process); at != before.end() && ticks > at->second)
      spent.emplace_back(ticks - at->second, process);
  std::sort(spent.rbegin(), spent.rend());
  for (const auto& [ticks, process] : spent)
    if (runs_on(process, cpus, proc))
      return read_text(proc + "/" + process + "/comm").value_or("?") + " (pid " + process + ")";
  return "";
}

}  // namespace assay
