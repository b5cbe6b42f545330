// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "config/config.hpp"
#include "device/device.hpp"
#include "measure/sampler.hpp"
#include "suite/case.hpp"
#include "suite/metrics.hpp"
#include "suite/record.hpp"
#include "supervisor/heartbeat.hpp"
#include "topology/entities.hpp"
#include "topology/topology.hpp"
#include "transport/clock_sync.hpp"
#include "transport/communicator.hpp"

namespace assay {

class GpuLinks;
class Injector;
class PowerMeter;

/// Input of a suite's plan; equal on all ranks.
struct PlanInput {
  const Config& config;
  const Topology& topology;
  std::uint64_t memory_per_rank_bytes;  ///< agreed: what a rank's arena may hold under --memory.fraction
  std::uint64_t seed;
};

/// The random stream of a case.
RandomStream case_stream(std::uint64_t seed, const std::string& path);

/// What a rank has in every case of a run.
struct RankEnvironment {
  const Config& config;
  const Topology& topology;
  const EntityTable& entities;
  Device& device;
  Communicator& world;
  Communicator& node;     ///< ranks of this node
  Communicator* leaders;  ///< local rank 0 of every node; null elsewhere
};

/// Everything that a suite uses while it runs a case.
struct Context : RankEnvironment {
  RandomStream random;  ///< of this case: equal on all ranks
  double run_start_s;   ///< now_s() at run start, on this rank's clock, offset-corrected to rank 0's
  double deadline_s;    ///< now_s() after which transports abort waits
  CaseRecord& record;
  int device_entity;                           ///< this rank's row
  Injector* injector = nullptr;                ///< injects faults; null without --inject
  const RetestOrder* retest = nullptr;         ///< of a retest case; null elsewhere
  supervisor::Heartbeat* heartbeat = nullptr;  ///< progress of this rank for its supervisor
  GpuLinks* gpu_links =
      nullptr;  ///< what carries data between GPUs beside these communicators; null where no GPU is measured
  /// Meter of this node's energy counters with a period in s; empty except on one rank of a node, see
  /// DevicePower.
  std::function<std::unique_ptr<PowerMeter>(double period_s)> power_meter = {};
  /// now_s() at which a running case ends after the current batch; agreed by the ranks, because their clocks
  /// differ.
  double end_s = std::numeric_limits<double>::infinity();

  /// For inputs that a retest must repeat: `random` of the screening case.
  RandomStream inputs() const;
  /// Integers `threads` and `arithmetic` of a case with digests: those of devices are compared where both are
  /// equal.
  void declare_arithmetic() const;
  void tell_arithmetic(CaseRecord::Row& row) const;
  double since_start(double t) const noexcept;
  /// At the end of a timed region that a suite times by itself, inside it: the injected delay, see
  /// TimedFault. `sampling` does it for the others.
  /// `server`: of storage, that the region waited for.
  double apply_injected_delay(double begin_s, std::uint64_t repetitions, bool warmup = false,
                              std::string_view server = {}) const;
  /// Counts a timed batch outside the sampler as progress.
  void count_batch() const noexcept;
  /// A communicator around `inner` that injects faults; null without faults.
  std::unique_ptr<Communicator> with_faults(Communicator& inner) const;
  /// Where --inject may corrupt a result before it is checked.
  void injection_point(std::string_view target, void* data, std::size_t count,
                       std::size_t element_bytes) const;
  /// For comparing times between ranks: null unless a clock fault is injected on this rank.
  ClockReading clock() const;
  /// The sampling plan of the level for a series of at most `seconds`.
  SamplingPlan sampling(double seconds) const;
  /// `alone` mode: calls `turn()` on the sampled devices of each node one after the other, while the others
  /// sleep. In a retest case on those that are measured again, several times, so that candidates and controls
  /// alternate.
  void take_turns(int turns, const std::function<void()>& turn);
};

/// Two entities that are measured together in a round of a case.
struct Pairing {
  std::size_t round = 0;
  int source = -1, destination = -1;  ///< rows of the EntityTable
};

class Suite {
 public:
  virtual ~Suite() = default;
  virtual std::string_view name() const noexcept = 0;
  virtual std::string_view summary() const noexcept = 0;  ///< one line
  virtual bool hidden() const noexcept { return false; }
  virtual std::vector<OptionSpec> options() const = 0;  ///< names start with "<suite>."
  virtual std::vector<results::MetricSpec> metrics()
      const = 0;  ///< of all operations, each with its operation
  /// The checkers of its results, each with a self-test that must pass in every run (CaseRecord::selftest). A
  /// suite with results and without checkers is INCONCLUSIVE; one without checked computation returns
  /// results::no_checks.
  virtual std::vector<std::string> checkers() const { return {}; }
  virtual FaultPoints fault_points() const { return {}; }  ///< what --inject can do to it
  /// What this rank does not have, and why, of what cases can do without, libraries above all. The plan gets
  /// what any rank lacks (Topology::lacks): it must not ask by itself, because all ranks make the same plan.
  /// Called before memory is set up and the plan is made.
  virtual std::map<std::string, std::string> lacks(const Config&, bool /*on_gpus*/) { return {}; }
  /// The cases of this level, required ones first. Pure; checks the suite's options (Error(usage)).
  virtual std::vector<Case> plan(const PlanInput& input) const = 0;
  /// The measured pairs of a case in the order of the rounds, as rows of `entities`; empty for cases without
  /// pairs.
  virtual std::vector<Pairing> pairings(const Case&, const PlanInput&, const EntityTable&) const {
    return {};
  }
  /// Called once on every rank before the first of `cases` (collective over `world`, where all still live):
  /// agrees on settings that must be equal on all ranks. Calls `go_on` every few seconds as progress; when it
  /// returns false on rank 0, the libraries' defaults remain.
  virtual void prepare(const std::vector<Case>& /*cases*/, const Config&, Device&, Communicator& /*world*/,
                       const std::function<bool()>& /*go_on*/) {}
  /// Runs one case on every rank (collective). Throws Error; the runner derives the case's state.
  virtual void run(const Case& c, Context& context) = 0;
  /// Called in another process of the node, which may outlive this object, after the process of a run was
  /// killed: removes what its destructors would have removed, and nothing of processes that live. Empty where
  /// there is nothing to remove.
  virtual std::function<void(pid_t killed)> clean_up(const Config&) const { return {}; }
  /// The same, of the directory that the parameter `path` of a case names: works in it a little, as the case
  /// does, and returns when it has answered. Empty where cases have no such parameter.
  virtual std::function<void(const std::string& directory)> touch() const { return {}; }
};

/// Seconds after which `go_on` returns false.
double prepare_seconds(Level level) noexcept;

/// All suites of this build in canonical order: generated by CMake from the suites' folders.
std::vector<std::unique_ptr<Suite>> make_suites();

}  // namespace assay
