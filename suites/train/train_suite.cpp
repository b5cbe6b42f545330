// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_suite.hpp"

#include "suites/train/job.hpp"
#include "suites/train/train_plan.hpp"

namespace assay {

std::vector<OptionSpec> TrainSuite::options() const {
  std::vector<OptionSpec> specs(4);
  specs[0] = {"train.preset", OptionKind::choices, "", "which models (default by level)", {"tiny", "small"}, "MODELS"};
  specs[1] = {"train.steps", OptionKind::integer, "", "steps of every training case (default by level)", {}, "N"};
  specs[2] = {"train.batch", OptionKind::integer, "", "sequences per rank and step (default by model)", {}, "N"};
  specs[3] = {"train.break", OptionKind::choice, "", "break the model on purpose, to see its regret leave the band",
              {"attention"}, "WHAT", false, true};
  return specs;
}

std::vector<MetricInfo> TrainSuite::metrics() const {
  return {
      {"<preset>-<mode>", "throughput", "token/s", "higher", "tokens of this rank divided by the time of a step"},
      {"<preset>-<mode>", "step", "s", "lower", "one step, from its data to its update"},
      {"<preset>-<mode>", "compute", "s", "lower", "the step without waiting for others: who is slow shows here"},
      {"<preset>-<mode>", "data", "s", "lower", "making the tokens"},
      {"<preset>-<mode>", "forward", "s", "lower", "forward pass and loss"},
      {"<preset>-<mode>", "backward", "s", "lower", "backward pass"},
      {"<preset>-<mode>", "exposed", "s", "lower", "communication that the backward pass did not hide"},
      {"<preset>-<mode>", "optimizer", "s", "lower", "AdamW"},
      {"<preset>-<mode>", "communication", "s", "lower", "time in which gradients were on their way"},
      {"<preset>-<mode>", "loss", "nat", "none", "cross-entropy per token of this rank's tokens"},
      {"<preset>-<mode>", "oracle", "nat", "none", "what a perfect model would lose on the same tokens"},
      {"<preset>-<mode>", "regret", "nat", "none", "loss - oracle over all ranks; must stay in its band"},
      {"<preset>-<mode>", "gradient_norm", "1", "none", "Euclidean norm of the mean gradient"},
      {"<preset>-<mode>", "errors", "count", "lower", "digests of this rank that differ from those of the others"},
      {"selftest-train", "detected", "count", "none", "buckets found corrupted (one was corrupted)"},
  };
}

std::vector<Case> TrainSuite::plan(const PlanInput& input) const { return train::plan_cases(input); }

void TrainSuite::run(const Case& c, Context& context) {
  if (c.parameters.contains("checker")) return train::run_selftest(c, context);
  if (c.parameters.at("mode") == "lockstep") return train::run_lockstep(c, context);
  train::run_together(c, context);
}

}  // namespace assay
