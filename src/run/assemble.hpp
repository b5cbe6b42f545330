// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "results/writer.hpp"
#include "suite/case.hpp"
#include "suite/record.hpp"
#include "topology/entities.hpp"

namespace assay {

/// Joins the ranks' records of one case, by place, into its stored form: rows in rank order,
/// [entity, sample] arrays padded with NaN, links added to `entities`. A measured NaN makes the case `error`;
/// ranks that declare different metrics are an internal error; a record with rows and without metrics has
/// those of the first. The samples of `records` are released as they are placed. `identity` is what beyond
/// the planned parameters must be equal for the case_key.
results::CaseBundle assemble(const Case& c, std::vector<CaseRecord> records, EntityTable& entities,
                             const std::string& identity);

/// The hash of all that must be equal between values that are compared: case name without repeat suffix,
/// planned parameters and `identity`.
std::string case_key(const Case& c, const std::string& identity);

}  // namespace assay
