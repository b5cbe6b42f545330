// SPDX-License-Identifier: Apache-2.0
// What the steps of a rank say when they are over.
#pragma once

#include "suites/train/frontier.hpp"
#include "suites/train/train_work.hpp"

namespace assay::train {

/// FLOP/s of this rank's best square product out of a few, all ranks of the job at once: what training could
/// reach. The matrices lie behind the model in the arena.
double own_gemm_rate(const TrainWork& work, Context& context);

/// Bytes/s of bus bandwidth, 2 (n - 1) / n times size over time, of the summing of gradients by itself: the
/// best of a few reductions of up to 64 MiB in the arena, the slowest rank's. 0 for one rank.
double own_bus_rate(const TrainWork& work, Context& context);

/// Collective: the work with as many sequences per reduction as make the time of a reduction `pressure` times
/// that of a backward pass at the GEMM rate, at least one and at most those of the plan, and as many passes
/// per update as keep its number of sequences. Tokens = communication seconds * rate / (pressure * 2/3 of the
/// FLOP per token).
TrainWork with_pressure(TrainWork work, double gemm_rate, double bus_rate, int ranks);

void declare_analysis(CaseRecord& record, double nominal_peak);

/// Collective: writes the numbers of declare_analysis into `row`, and an event `straggler` on a rank that
/// straggles, which names the stage it leads in.
void analyse(const TrainWork& work, const StepLog& log, const FrontierSum& frontier, double gemm_rate,
             CaseRecord::Row& row, Context& context);

}  // namespace assay::train
