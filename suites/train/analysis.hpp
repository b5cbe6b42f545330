// SPDX-License-Identifier: Apache-2.0
// What the steps of a rank say when they are over.
#pragma once

#include "suites/train/frontier.hpp"
#include "suites/train/job.hpp"

namespace assay::train {

/// FLOP/s of this rank's best square product out of a few, all ranks of the job at once: what training could reach. The
/// matrices lie behind the model in the arena.
double own_gemm_rate(const Job& job, Context& context);

void declare_analysis(CaseRecord& record);

/// Collective: writes the numbers of declare_analysis into `row`, and an event `straggler` on a rank that straggles, which
/// names the stage it leads in.
void analyse(const Job& job, const StepLog& log, const FrontierSum& frontier, double gemm_rate, CaseRecord::Row& row,
             Context& context);

}  // namespace assay::train
