// SPDX-License-Identifier: Apache-2.0
// A case inside nodes that some ranks did not finish: what the other ranks measured is judged without them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/writer.hpp"
#include "suite/case.hpp"
#include "suite/record.hpp"
#include "topology/entities.hpp"

namespace assay {

struct Unfinished {
  std::vector<CaseRecord> records;  ///< by place; those of ranks that finished are empty
  std::vector<std::string> parts;   ///< names of their devices
  std::string text;  ///< "ended in error on NODE/DEVICE: REASON" or "is incomplete on ...", of the first
};

/// Takes the records of ranks that ended `c` in error or did not complete it out of `records`, where others
/// measured rows of it. None for cases of several nodes, in which one rank holds up all, and for retests.
std::optional<Unfinished> take_unfinished(const Case& c, std::vector<CaseRecord>& records,
                                          const EntityTable& entities);

/// The part of `c` that its ranks did not finish, as a case of its own, NAME.u1: raw samples, which nothing
/// judges, and wrong values, which the verdict judges. Nullopt without any.
std::optional<results::CaseBundle> assemble_unfinished(const Case& c, Unfinished unfinished,
                                                       EntityTable& entities, const std::string& identity);

}  // namespace assay
