// SPDX-License-Identifier: Apache-2.0
// The made ranks of a rehearsal: the real routes and relays of their supervisors, and records that nobody
// measured: of each device, and of the links of a case of pairs.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "made_cluster.hpp"
#include "rehearsal.hpp"
#include "run/planner.hpp"
#include "run/retest.hpp"
#include "supervisor/route.hpp"
#include "supervisor/wire.hpp"

namespace assay::bench {

/// What ranks know of the run.
struct Job {
  std::vector<std::unique_ptr<Suite>> suites = make_suites();
  Topology topology;
  Plan plan;
  std::unique_ptr<EntityTable> entities;
  Upset upset;
  std::size_t samples = 0;  ///< of each row
  std::string address;      ///< of the collector
};

/// Made ranks of whole nodes in one process: the routes of their supervisors, and what these send. Of rank 0
/// only the worker is here. As the loop of a real supervisor, it serves a rank when a socket of it is ready
/// or a time has come: a look at every socket in every round would take the cores from rank 0's supervisor.
class MadeRanks {
 public:
  /// `came_line` is closed when all of them have found the collector. Throws Error(resource).
  MadeRanks(const Job& job, int first, int count, int came_line);
  ~MadeRanks();
  MadeRanks(const MadeRanks&) = delete;
  MadeRanks& operator=(const MadeRanks&) = delete;

  /// Rank 0's worker: begins when `all_came` has ended, and closes `leaves` when it has said goodbye.
  void lead(int link, const std::string& start, int leaves, int all_came);
  void run();

 private:
  struct Rank {
    std::unique_ptr<supervisor::Route> route;
    bool ready = false, stopped = false, killed = false;
    int case_index = -1;
    double status_at_s = 0, due_s = 0, exit_at_s = 0;
    Order order;
    std::vector<pollfd> watched;
  };
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank - first_)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  void begin_ranks();
  void wait();
  void watch(int rank);
  double next_time(int rank, double now) const;
  void serve(int rank, double now);
  void take(int rank, const supervisor::Message& message, double now);
  void step(int rank, const supervisor::Message& message, double now);
  void hand_in(int rank, double now);
  void serve_worker(double now);
  void start_when_all_came();

  const Job& job_;
  int first_, epoll_;
  int begun_ = 0, came_ = 0;  ///< ranks that look for the collector or have looked for it, and have found it
  std::vector<Rank> ranks_;
  double report_every_s_;
  std::vector<double> wake_at_s_;  ///< when a rank is served at the latest; infinite: it has left
  std::vector<epoll_event> events_;
  supervisor::Stream worker_;
  std::string start_;
  int came_line_, leaves_ = -1, all_came_ = -1;
};

}  // namespace assay::bench
