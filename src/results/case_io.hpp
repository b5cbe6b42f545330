// SPDX-License-Identifier: Apache-2.0
// One case as a group of a results file. Private to src/results.
#pragma once

#include <string>

#include "results/h5.hpp"
#include "results/model.hpp"

namespace assay::results {

class SharedCoordinates;

/// A message when the sizes, names, units or references of a case are wrong, else empty. `entities` is the
/// length of /entities.
std::string problem_of(const CaseData& data, std::size_t entities);

/// The part of it that a reader depends on: references and coordinates.
std::string reference_problem(const CaseData& data, std::size_t entities);

/// Makes the group `name` below `parent`. Without `shared` nothing gets a dimension scale.
void write_case(hid_t parent, const std::string& name, const CaseData& data, std::int64_t sequence,
                SharedCoordinates* shared);

/// Throws Error(data) naming the dataset below `path`. With `source` large arrays of samples stay in that
/// file.
CaseData read_case(hid_t file, const std::string& path, const h5::Limits& limits, std::int64_t& sequence,
                   const ValueSource* source = nullptr);

}  // namespace assay::results
