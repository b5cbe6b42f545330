// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::results {

/// The text of results-schema/schema.json, as built in.
const std::string& schema_text();

/// Compares a results file with the schema: groups, columns, types, lengths, units, allowed values, scales,
/// references into /entities, the accounting of the plan. One line per problem, empty when there is none.
/// Throws Error(data) when the file cannot be read at all, and Error(usage) when it does not exist.
std::vector<std::string> check_file(const std::filesystem::path& path);

/// The closed list of units.
bool is_unit(const std::string& unit);

}  // namespace assay::results
