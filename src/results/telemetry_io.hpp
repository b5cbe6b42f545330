// SPDX-License-Identifier: Apache-2.0
// /telemetry: the samples of all entities in one table, and their flags in another. Private to src/results.
#pragma once

#include <string>
#include <vector>

#include "results/h5.hpp"
#include "results/model.hpp"

namespace assay::results {

/// A message when lengths, names, units or an entity are wrong, else empty.
std::string telemetry_problem(const TelemetryTable& table, std::size_t entities);

/// Makes /telemetry, where there is any. `scales` as for TableWriter.
void write_telemetry(hid_t file, const TelemetryTable& table, const std::vector<FlagRow>& flags, bool scales);

/// Both empty where there is none. Files before schema 2.0 have one table for each entity.
void read_telemetry(hid_t file, const h5::Limits& limits, TelemetryTable& table, std::vector<FlagRow>& flags);

inline constexpr const char *telemetry_group = "/telemetry", *telemetry_flags = "/telemetry/flags";

/// Whether it is the table of one entity, from before schema 2.0: its row is an attribute.
bool is_of_one_entity(hid_t file, const std::string& path);

}  // namespace assay::results
