// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <string_view>

#include "results/model.hpp"

namespace assay::results {

/// Every sample of every metric, one per line, as CSV (RFC 4180, CRLF, a header line): run_id, suite, case,
/// state, metric, role, unit, better, entity_kind, entity_name, entity_id, node, rank, source, destination,
/// block, sample, t, value. A metric with one value per entity has empty block, sample and t. Samples that
/// were not taken are left out; a measured NaN is `nan`. Numbers have 17 significant digits.
void export_csv(const Results& results, std::ostream& out);

/// The same as JSON objects, one per line, told apart by `record`: one `run`, a `finding`
/// for each of the stored verdict, then for every case a `case` (with its parameters, so that skipped ones
/// appear too), its `sample`s and its `array`s. As in --json, NaN
/// is null and infinities are the texts "inf" and "-inf".
void export_jsonl(const Results& results, std::ostream& out);

/// A field of CSV: in quotes where it must be.
std::string csv_field(std::string_view text);

}  // namespace assay::results
