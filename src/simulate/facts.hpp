// SPDX-License-Identifier: Apache-2.0
// What is not a rate: the checks of a synthetic run, and faults that need no statistics.
#pragma once

#include "results/model.hpp"
#include "simulate/machine.hpp"

namespace assay::simulate {

/// Adds the inventory case, the checks and self-tests of the suites that were measured, and what the faults
/// bitflip, hang, lost and missing leave behind. Changes cases: who is lost has no samples after the first
/// half of the run.
void add_facts(results::Results& results, const Machine& machine);

}  // namespace assay::simulate
