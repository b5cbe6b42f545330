// SPDX-License-Identifier: Apache-2.0
// What parts and a whole fleet do from run to run: changes are logarithms of rates.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace assay::verdict {

/// Robust sigma of a part from run to run, by the differences of successive runs: a level that changes once
/// counts once. `rows`: [part][run], NaN where absent. `apart`: without what all parts have in common, which
/// needs several.
double noise_of(const std::vector<std::vector<double>>& rows, bool apart);

/// Where a level changes once: of the cuts in two the one with the least squares within; 0 for fewer than 2.
std::size_t level_cut(std::span<const double> values);

/// Losses of a part that ended, as positions from and to: three runs or more that are 2 % and 5 `noise` below
/// the best pair of successive runs. None of a part that changes its level more often than in every fourth
/// run: that is its way.
std::vector<std::pair<std::size_t, std::size_t>> ended_losses(std::span<const double> values, double noise);

/// Robust sigma by the shortest interval that holds half of the values (Rousseeuw & Leroy 1987, with their
/// correction for few): the other half may be anywhere. At least 4 values.
double scale_of_half(std::vector<double> values);

/// How far a fleet as a whole is from its past, from the changes of its parts: their median, or where that is
/// more than noise and a tenth of the parts changed by less than half of it, the median of these: some parts
/// changed, not the fleet. `noise`: robust sigma of a healthy part's change.
double drift_of(std::span<const double> changes, double noise);

/// Robust sigma of a fleet's level, in the order of runs; 0 for fewer than 3. From 7 runs on that of the
/// steps between runs where it is less: what a fleet loses bit by bit is no spread of healthy runs.
double fleet_sigma(std::span<const double> levels);

/// How far below its past, logarithmic, a whole fleet is told to be slow. Fleets drift by 1-2 % from run to
/// run (time of day, temperature); few runs do not tell how much this one does.
double fleet_threshold(std::size_t runs, double sigma);

}  // namespace assay::verdict
