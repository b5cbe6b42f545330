// SPDX-License-Identifier: Apache-2.0
#include "transport/clock_sync.hpp"

#include <unistd.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/system.hpp"

namespace assay {
namespace {

constexpr int clock_tag = 32001;

/// Names the clock this process reads: one boot of one kernel, in one time namespace. Unknown: a name of its
/// own.
std::string clock_name(int rank) {
  const auto boot = read_text("/proc/sys/kernel/random/boot_id");
  if (!boot || boot->empty()) return "rank " + std::to_string(rank);
  char space[64] = "";
  const ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
  return *boot + " " + (n > 0 ? std::string(space, static_cast<std::size_t>(n)) : "");
}

/// Answers each question of a peer with the own time.
void serve(Communicator& comm, int peer, int exchanges, const ClockReading& reading) {
  double time = 0;
  for (int i = 0; i < exchanges; ++i) {
    comm.recv(&time, sizeof time, peer, clock_tag);
    time = reading(now_s());
    comm.send(&time, sizeof time, peer, clock_tag);
  }
}

/// To the clock of `peer`.
ClockOffset ask(Communicator& comm, int peer, int exchanges, const ClockReading& reading) {
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < exchanges; ++i) {
    const double before = reading(now_s());
    double theirs = before;
    comm.send(&theirs, sizeof theirs, peer, clock_tag);
    comm.recv(&theirs, sizeof theirs, peer, clock_tag);
    const double after = reading(now_s());
    // The peer read its clock somewhere between; the middle is wrong by at most half the round trip.
    if ((after - before) / 2 < best.error_s) best = {theirs - (before + after) / 2, (after - before) / 2};
  }
  return best;
}

}  // namespace

ClockOffset estimate_clock_offset(Communicator& comm, int exchanges, bool every_rank,
                                  const ClockReading& reading) {
  const ClockReading clock = reading ? reading : [](double t) { return t; };
  const auto names = comm.all_gather_text(every_rank || reading ? "rank " + std::to_string(comm.rank())
                                                                : clock_name(comm.rank()));
  std::map<std::string, std::size_t> clocks;  // numbered in the order of their first ranks
  std::vector<int> first;                     // the rank that measures for each clock
  for (std::size_t rank = 0; rank < names.size(); ++rank)
    if (clocks.emplace(names[rank], first.size()).second) first.push_back(static_cast<int>(rank));
  const std::size_t mine = clocks.at(names[static_cast<std::size_t>(comm.rank())]);

  // A binomial tree: the steps are as many as the number of clocks has bits, and its branches are
  // independent.
  ClockOffset offset;
  for (std::size_t bit = 1; first[mine] == comm.rank() && bit < first.size(); bit *= 2) {
    if ((mine & bit) != 0) {
      offset = ask(comm, first[mine - bit], exchanges, clock);
      break;
    }
    if (mine + bit < first.size()) serve(comm, first[mine + bit], exchanges, clock);
  }
  std::vector<ClockOffset> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(&offset, all.data(), sizeof offset);
  ClockOffset sum;
  for (std::size_t at = mine; at != 0; at &= at - 1) {  // without its lowest bit: the one it asked
    const ClockOffset& step = all[static_cast<std::size_t>(first[at])];
    sum.offset_s += step.offset_s;
    sum.error_s += step.error_s;
  }
  return sum;
}

}  // namespace assay
