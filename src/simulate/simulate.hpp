// SPDX-License-Identifier: Apache-2.0
// A run of a synthetic cluster, as the results that a real run would have left, with faults that are known.
// The file and the verdict are the same as for a real run; operating curves need no file.
#pragma once

#include <functional>

#include "results/model.hpp"
#include "simulate/spec.hpp"
#include "verdict/retest/retest.hpp"
#include "verdict/verdict.hpp"

namespace assay::simulate {

/// Everything up to the retest stage; no verdict. Deterministic in the spec. Throws Error(usage) for a spec
/// that makes no cluster.
results::Results screen(const Spec& spec);

/// Throws Error(usage) for a fault of duty 1 that changed no sample of `screened`, which holds an event of
/// each such fault.
void refuse_without_effect(const Spec& spec, const results::Results& screened);

/// Measures again what the verdict asks for, with new noise around the same true rates, until it asks for
/// nothing more (at most `most_stages` times). Returns how many retest cases were added.
inline constexpr int most_stages = 4;
std::size_t run_retests(results::Results& results, const Spec& spec, const verdict::Options& options);
/// The same with the measurement given: `measure` adds the case of a retest to the results, or returns false.
std::size_t run_retests(results::Results& results, const verdict::Options& options,
                        const std::function<bool(const verdict::Retest&)>& measure);

/// Both, and the verdict stored in the results.
results::Results run(const Spec& spec, const verdict::Options& options = {});

/// The spec as stored in /config under "simulated".
Json to_json(const Spec& spec);

const char* to_string(Population population) noexcept;
const char* to_string(Noise noise) noexcept;

}  // namespace assay::simulate
