// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "run/device_selection.hpp"
#include "suite/suite.hpp"
#include "telemetry/nvml_thread.hpp"
#include "topology/launch_check.hpp"
#include "topology/topology.hpp"
#include "transport/mpi_communicator.hpp"

namespace assay {

/// The job as all ranks agree to see it.
struct Job {
  Topology topology;
  std::vector<LaunchFinding> findings;
  std::unique_ptr<Communicator> node;
  std::unique_ptr<Communicator> leaders;  ///< null except on local rank 0
  struct Texts {
    std::vector<std::string> nodes, places;  ///< by rank
  } texts;                                   ///< what the topology was made from
  std::string fabric;                        ///< summary of --topology for this job, for users
  std::shared_ptr<NvmlThread> nvml;          ///< on local rank 0 of nodes with GPUs; null elsewhere
  double probe_s = 0;
};

/// Throws Error(usage) on every rank, naming the ranks that differ from rank 0, when binaries, versions or
/// options are not the same everywhere. Collective.
void agree_software(Communicator& world, const Config& config);

/// Places the job's NICs by the text of --topology (empty: none). Returns a summary for users. Throws
/// Error(usage) when the file has none of the nodes.
std::string place_nics(const Config& config, Topology& topology);

/// The nodes of --absent, which take no part because they did not answer when the run was to begin.
std::vector<LaunchFinding> absent_findings(const Config& config);

/// Node leaders probe their node, all ranks exchange where they are. `node`: the ranks that take part on this
/// node; `suites` say what they lack. Collective.
Job discover_job(MpiSession& mpi, const Config& config, const std::vector<std::unique_ptr<Suite>>& suites,
                 const DeviceSelection& devices, std::unique_ptr<Communicator> node);

/// Throws Error(internal) naming ranks when the plan hash is not the same everywhere. Collective.
void agree_plan(Communicator& world, const std::string& hash);

}  // namespace assay
