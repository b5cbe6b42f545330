// SPDX-License-Identifier: Apache-2.0
// What parts and a whole fleet do from run to run: changes are logarithms of rates.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace assay::verdict {

/// Robust sigma of a part from run to run, by the differences of successive runs less their median: a level
/// that changes once counts once. `rows`: [part][run], NaN where absent.
double noise_of(const std::vector<std::vector<double>>& rows);

/// How far a fleet as a whole is from its past, from the changes of its parts: their median, or where that is
/// more than noise and a tenth of the parts changed by less than half of it, the median of these: some parts
/// changed, not the fleet. `noise`: robust sigma of a healthy part's change.
double drift_of(std::span<const double> changes, double noise);

/// How far below its past, logarithmic, a whole fleet is told to be slow. Fleets drift by 1-2 % from run to
/// run (time of day, temperature); few runs do not tell how much this one does.
double fleet_threshold(std::size_t runs, double sigma);

}  // namespace assay::verdict
