// SPDX-License-Identifier: Apache-2.0
#include "suites/train/job.hpp"

namespace assay::train {

Job job_from(const Case& c) {
  Job job{preset_named(c.parameters.at("preset").get<std::string>()), c.parameters.value("steps", 0),
          c.parameters.value("fixed", 0) != 0};
  job.preset.batch = c.parameters.at("batch").get<std::size_t>();
  return job;
}

Replica::Replica(const Job& job, Context& context)
    : source_(job.preset.source, RandomStream(context.config.seed, "train").child("source")),
      gpt_(context.device, job.preset.model, job.preset.batch, context.device.arena()),
      counted_(job.preset.batch * source_.counted(job.preset.model.length)),
      tokens_(job.preset.tokens()),
      targets_(job.preset.tokens()) {
  gpt_.initialise(RandomStream(context.config.seed, "train").child("parameters"));
  if (context.config.options.text("train.break") == "attention") gpt_.break_attention();
}

void Replica::load(std::uint64_t first) {
  const std::size_t length = gpt_.shape().length;
  oracle_sum_ = 0;
  for (std::size_t b = 0; b < gpt_.batch(); ++b)
    oracle_sum_ += source_.sequence(first + b, {tokens_.data() + b * length, length},
                                    {targets_.data() + b * length, length});
  gpt_.load(tokens_, targets_);
}

void Replica::forward() {
  gpt_.forward();
  loss_sum_ = gpt_.loss(1.0f / static_cast<float>(counted_));
}

Progress progress_of(const Context& context) {
  const std::string name = context.config.options.text("train.progress");
  return name == "none" ? Progress::none : name == "calls" ? Progress::calls : Progress::thread;
}

std::string name_of_rank(const Context& context, int rank) {
  const int row = context.entities.device_of_rank(rank);
  return "rank " + std::to_string(rank) + " (" + context.entities.rows()[static_cast<std::size_t>(row)].name + ")";
}

}  // namespace assay::train
