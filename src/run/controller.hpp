// SPDX-License-Identifier: Apache-2.0
// The results of a run as rank 0's supervisor keeps them: plan, file, verdict. It never calls MPI, so it can
// end a run whose ranks are stuck or dead.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "results/writer.hpp"
#include "run/session.hpp"
#include "suite/suite.hpp"
#include "supervisor/controller.hpp"
#include "topology/entities.hpp"
#include "topology/launch_check.hpp"

namespace assay {

/// The description of the job that rank 0's worker sends to its supervisor.
struct StartFacts {
  std::uint64_t seed = 0;
  bool seed_given = false;
  std::uint64_t agreed_memory_bytes = 0;
  std::vector<std::string> nodes;   ///< by rank, what discover() takes
  std::vector<std::string> places;  ///< by rank, what discover() takes
  std::string plan_hash;
  std::vector<int>
      members;  ///< ranks of the launch that take part, ascending: their own ranks are the places here
  std::vector<LaunchFinding> findings;
  std::vector<std::pair<std::string, std::string>> environment;  ///< times, versions
};
std::string to_text(const StartFacts& facts);
StartFacts start_facts_from(const std::string& text);

/// Message of rank 0's worker when all ranks are ready.
struct ReadyFacts {
  double run_start_s = 0;  ///< on the clock of the machine of the first rank that takes part
  double elapsed_s = 0;    ///< since then
  std::string identity;    ///< of device and transport: part of every case_key
};
std::string to_text(const ReadyFacts& facts);
ReadyFacts ready_facts_from(const std::string& text);

/// Message of a rank about an ended case.
struct CaseReport {
  std::string record;     ///< CaseRecord::serialize()
  std::string counters;   ///< JSON of its node (tell_counter); empty elsewhere and where there are none
  std::string telemetry;  ///< JSON of what was sampled on its node; empty elsewhere
  std::vector<std::string> unfired;  ///< injected faults without effect on this rank so far
};
std::string to_text(const CaseReport& report);
CaseReport case_report_from(const std::string& text);
/// The text of a report that may travel. One of more than `most_bytes` loses its samples: an error of the
/// case, which names `who` and `what`.
std::string bounded_text(CaseReport report, const std::string& who, const std::string& what,
                         std::size_t most_bytes);

/// Adds a counter, NaN where it could not be read, to what a node leader sends: parts with their counters, of
/// which each has one number where both are equal and none where it is not offered.
void tell_counter(Json& told, const std::string& kind, const std::string& name, const std::string& counter,
                  double before, double after);
/// Adds these to the case that ended.
void add_counters(const Json& told, const EntityTable& entities, results::CaseBundle& bundle);
/// Adds what a node leader sampled to the case that ended.
void add_telemetry(const Json& told, const EntityTable& entities, results::CaseBundle& bundle);

std::unique_ptr<supervisor::Controller> make_controller(Config config,
                                                        std::vector<std::unique_ptr<Suite>> suites,
                                                        const RunHooks& hooks);

}  // namespace assay
