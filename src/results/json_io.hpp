// SPDX-License-Identifier: Apache-2.0
// Rows, start and verdict of a results file as JSON, with the names that the schema gives the columns.
#pragma once

#include <string>

#include "base/json.hpp"
#include "results/model.hpp"
#include "results/writer.hpp"

namespace assay::results {

/// The stored form of a verdict (/verdict/json): findings with absent numbers as null.
Json verdict_to_json(const VerdictData& verdict);
VerdictData verdict_from_json(const Json& json);

Json event_to_json(const EventRow& event);
EventRow event_from_json(const Json& json);

Json start_to_json(const Writer::Start& start);
Writer::Start start_from_json(const Json& json);

/// Compact text; bytes that are not UTF-8 become U+FFFD.
std::string dump(const Json& json);

/// Throws Error(data) for text that is no JSON, or nested so deeply that only a crash can be meant.
Json parse(const std::string& text);

/// `dump` with a checksum as the last member, and back. Throws Error(data) when the checksum does not fit.
std::string dump_sealed(const Json& object);
Json parse_sealed(const std::string& text);

}  // namespace assay::results
