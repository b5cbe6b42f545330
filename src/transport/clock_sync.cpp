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

/// Rank 0's side of the exchanges with one peer: answers each question with its own time.
void serve(Communicator& comm, int peer, int exchanges, const ClockReading& reading) {
  double time = 0;
  for (int i = 0; i < exchanges; ++i) {
    comm.recv(&time, sizeof time, peer, clock_tag);
    time = reading(now_s());
    comm.send(&time, sizeof time, peer, clock_tag);
  }
}

ClockOffset ask(Communicator& comm, int exchanges, const ClockReading& reading) {
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < exchanges; ++i) {
    const double before = reading(now_s());
    double theirs = before;
    comm.send(&theirs, sizeof theirs, 0, clock_tag);
    comm.recv(&theirs, sizeof theirs, 0, clock_tag);
    const double after = reading(now_s());
    // Rank 0 read its clock somewhere between; the middle is wrong by at most half the round trip.
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
  std::map<std::string, int> first;  // the rank that measures for each clock
  for (std::size_t rank = 0; rank < names.size(); ++rank) first.emplace(names[rank], static_cast<int>(rank));
  const int mine = first.at(names[static_cast<std::size_t>(comm.rank())]);

  ClockOffset offset;
  if (comm.rank() == 0) {
    for (std::size_t peer = 1; peer < names.size(); ++peer)
      if (first.at(names[peer]) == static_cast<int>(peer))
        serve(comm, static_cast<int>(peer), exchanges, clock);
  } else if (mine == comm.rank()) {
    offset = ask(comm, exchanges, clock);
  }
  std::vector<ClockOffset> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(&offset, all.data(), sizeof offset);
  return all[static_cast<std::size_t>(mine)];
}

}  // namespace assay
