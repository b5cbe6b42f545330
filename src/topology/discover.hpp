// SPDX-License-Identifier: Apache-2.0
// How what each process sees becomes the one Topology all agree on. The exchange itself is the caller's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "topology/topology.hpp"

namespace assay {

/// Description that every rank sends to the others.
struct RankFacts {
  std::string hostname;
  int leader_rank = 0;  ///< world rank of local rank 0 of its node
  int local_rank = 0;
  Shared<std::vector<int>> mask;  ///< CPUs the launcher allowed
  int pid = 0;
  std::string version;                            ///< of the program: differing ones are an error
  std::vector<std::string> unlisted_gpus = {};    ///< UUIDs that it may use and its leader does not describe
  std::string device = "host";                    ///< device kind of the job, from choose_devices
  std::string gpu = {};                           ///< the GPU that this rank measures with, by UUID
  double gpu_free_bytes = 0;                      ///< of its memory, before this run took any
  double gpu_sweep_rate = 0;                      ///< B/s of a short sweep over its memory
  std::string no_products = {};                   ///< why it multiplies no matrices; empty where it does
  std::string compute = {};                       ///< capability of that GPU, "9.0", as its runtime says
  std::map<std::string, std::string> lacks = {};  ///< see Suite::lacks
};

/// Of this process; `leader_rank` and `local_rank` come from splitting the world by shared memory.
RankFacts own_facts(int leader_rank, int local_rank, std::vector<std::string> unlisted_gpus = {});

/// What the cgroup of this process allows; NaN: no quota.
double own_quota_cores();

std::string to_text(const RankFacts& facts);
RankFacts rank_facts_from(const std::string& text);

/// The topology, equal on all ranks but for `self`. `node_json_by_rank` holds to_json(probe_node()).dump() of
/// each node's leader, or its differences() from the first of them, and is empty for other ranks;
/// `facts_by_rank` holds to_text of every rank; `threads` > 0 overrides the share of cores. GPUs that a rank
/// may use and NVML does not list (no NVML, or a part of a GPU) are added to their node; compute capabilities
/// that NVML does not tell are those of the runtime. Nodes that call themselves alike get names and ids of
/// their own. Throws Error(usage) naming the ranks when they run different versions, Error(internal) when a
/// leader's node is missing.
Topology discover(const std::vector<std::string>& node_json_by_rank,
                  const std::vector<std::string>& facts_by_rank, int self, int threads);

/// Ranks and nodes of which only the host names are known; ranks without one are left out.
Topology topology_of_hosts(const std::vector<std::string>& host_by_rank);

}  // namespace assay
