// SPDX-License-Identifier: Apache-2.0
// A collective in several concurrent groups, repeated with other groups: members and rates of each group.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// One division of the ranks, all of whose groups ran at the same time.
struct Draw {
  int number = 0;
  std::map<int, std::vector<double>> rates;     ///< by group: logs of the rates of all samples
  std::map<int, std::set<std::int32_t>> units;  ///< by group: rows of /entities of its members
};

/// The units that groups separate: nodes, or devices if each rail (local rank) has its own groups.
enum class Unit { node, device };

/// The draws of one case by covariate `group` = 1,000,000 x draw + group; none without it, or of another
/// shape.
std::vector<Draw> draws_of(const Judgement& j, const results::CaseData& c, const std::string& metric,
                           Unit unit);

/// The draws of all cases of a series, or of their retests.
std::vector<Draw> draws_of(const Judgement& j, const Series& s, bool retest);

/// How many rails the groups of a case are divided into (parameter `rails`: group number modulo rails is the
/// rail), 1 if none.
int rails_of(const results::CaseData& c);

/// A rail judges devices; with all ranks of a node in one group the slow one cannot be told apart.
Unit unit_of(const Series& s);

/// The text that a case has under `key` of its parameters; empty when absent.
std::string text_parameter(const results::CaseData& c, const char* key);

/// The operation of a collective is one for all its ranks: who of them is at fault it cannot tell. The
/// slowest rank's time is the operation's; it stands for the node where each node has a communicator of its
/// own, else for the cluster.
std::vector<Below> one_for_each_communicator(const Judgement& j, const Series& s,
                                             const std::vector<Below>& below);

}  // namespace assay::verdict
