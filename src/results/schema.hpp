// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::results {

/// The text of results-schema/schema.json, as built in.
const std::string& schema_text();

/// The text of results-schema/before-1.3.json: what files say nothing of that were written before metrics
/// described themselves.
const std::string& before_text();

/// Compares a results file with the schema: groups, columns, types, lengths, units, allowed values, scales,
/// references into /entities, the accounting of the plan. One line per problem, empty when there is none.
/// Throws Error(data) when the file cannot be read at all, and Error(usage) when it does not exist.
std::vector<std::string> check_file(const std::filesystem::path& path);

/// The closed list of units.
bool is_unit(const std::string& unit);

/// The closed list of texts of that name ("stage", "metric_class"), in its order. Throws Error(internal) if
/// there is none.
std::vector<std::string> allowed_values(const std::string& name);

}  // namespace assay::results
