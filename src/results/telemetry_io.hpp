// SPDX-License-Identifier: Apache-2.0
// /telemetry: a table per entity, and the flags of all of them. Private to src/results.
#pragma once

#include <string>
#include <vector>

#include "results/h5.hpp"
#include "results/model.hpp"

namespace assay::results {

/// Appends what a case brought of an entity to what is there; a quantity that one of them lacks is NaN there.
void append(TelemetryTable& all, TelemetryTable&& one);

/// A message when lengths, names, units or the entity are wrong, else empty.
std::string telemetry_problem(const TelemetryTable& table, std::size_t entities);

/// Makes /telemetry, where there is any. The tables are named after their entities; without these (in the
/// file of a case) by number.
void write_telemetry(hid_t file, const std::vector<TelemetryTable>& tables, const std::vector<FlagRow>& flags,
                     const std::vector<Entity>* entities);

/// Both empty where there is none.
void read_telemetry(hid_t file, const h5::Limits& limits, std::vector<TelemetryTable>& tables,
                    std::vector<FlagRow>& flags);

inline constexpr const char* telemetry_flags = "flags";  ///< table below /telemetry that is of no entity

}  // namespace assay::results
