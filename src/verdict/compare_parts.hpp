// SPDX-License-Identifier: Apache-2.0
// Single parts that a comparison of whole fleets does not show: those that lost speed alone, and those that
// are gone.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/robust.hpp"
#include "measure/statistics.hpp"
#include "verdict/snapshot.hpp"

namespace assay::verdict {

/// What one unit measured, over all runs of its side.
struct ComparedUnit {
  std::string name, node, stratum;
  std::vector<double> rates, clocks;  ///< logs, one per run
  double rate() const { return median(rates); }
  double clock() const { return median(clocks); }
};

using ComparedUnits = std::map<std::string, ComparedUnit>;  ///< by identity

/// One metric that both sides have in the same unit and under the same case_key.
struct ComparedMetric {
  std::string name;
  const ComparedUnits *units_a, *units_b;  ///< what the comparison is made of
  const ComparedUnits *parts_a, *parts_b;  ///< parts of these units, empty where they are the units
  const ComparedUnits *links_a, *links_b;  ///< single links, empty of other metrics
};

/// `3 nodes are only in A: n1, n2, n3`
std::string counted(const std::vector<std::string>& which, const std::string& one, const std::string& more);

/// Parts of B that are slow alone: against their own value in A where A has them, else against the others of
/// B, unless A has parts that are as slow. A unit that is named stands for its parts, and for what
/// it sends. Single links meet traffic: they are named where they lost `odd_link_loss`. Returns whether there
/// are such.
bool note_odd_parts(const std::vector<ComparedMetric>& metrics, std::vector<std::string>& notes);

/// Parts that only one side measured, of nodes that both sides have.
void note_missing_parts(const std::vector<ComparedMetric>& metrics, std::vector<std::string>& notes);

/// What its values may not be trusted for: injected faults, and values that are left out.
void note_run(const Snapshot& run, std::vector<std::string>& notes);

/// Names of the nodes of these runs by identity.
std::map<std::string, std::string> nodes_of(const std::vector<Snapshot>& runs);
/// Nodes of `there`, which is called `side`, that are not `elsewhere`.
void note_nodes(const std::map<std::string, std::string>& there,
                const std::map<std::string, std::string>& elsewhere, const std::string& side,
                std::vector<std::string>& notes);

}  // namespace assay::verdict
