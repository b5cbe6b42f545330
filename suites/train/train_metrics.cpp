// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_metrics.hpp"

namespace assay::train {

using results::Better;
using results::Judging;
using results::MetricClass;
using results::Role;
using results::SharedBy;

namespace {

using Specs = std::vector<results::MetricSpec>;

results::MetricSpec seconds(const char* name, const char* title) {
  return {name, "s", Better::lower, false, Role::covariate, true, title};
}
results::MetricSpec explains(const char* name, const char* unit, Better better, const char* title) {
  return {name, unit, better, false, Role::covariate, false, title};
}
results::MetricSpec errors(const char* title) {
  return {"errors", "count", Better::lower, true, Role::metric, true, title};
}
void add_rate(Specs& specs, const std::string& name, const char* title) {
  for (auto& spec : storage_rates(name, title)) specs.push_back(std::move(spec));
}

Specs alone_metrics() {
  return {{"throughput", "token/s", Better::higher, true, Role::metric, true,
           "the same step on one rank of the node at a time"},
          seconds("data", "of that step: making the tokens"),
          seconds("forward", "of that step: forward pass and loss"),
          seconds("backward", "of that step: backward pass"),
          seconds("optimizer", "of that step: AdamW"),
          errors("steps that gave other bits than the first one")};
}

/// Of every step. `own`: of the part that a rank computes for itself; `in_step`: of its time.
Specs step_metrics(const Judging& own, const Judging& in_step) {
  return {{"throughput", "token/s", Better::higher, true, Role::metric, true,
           "tokens of this rank divided by the time of a step"},
          {"step", "s", Better::lower, true, Role::covariate, true, "one step, from its data to its update"},
          {"compute", "s", Better::lower, true, Role::covariate, true,
           "step without the wait for other ranks; shows stragglers", in_step},
          {"compute_throughput", "token/s", Better::higher, false, Role::metric, true,
           "tokens of this rank divided by compute: compared between ranks", own},
          seconds("data", "making the tokens"),
          seconds("forward", "forward pass and loss"),
          seconds("backward", "backward pass"),
          seconds("exposed", "communication that the backward pass did not hide"),
          seconds("optimizer", "AdamW"),
          seconds("communication", "time in which gradients were on their way"),
          {"loss", "nat", Better::none, false, Role::covariate, true,
           "cross-entropy per token of this rank's tokens"},
          {"oracle", "nat", Better::none, false, Role::covariate, true,
           "what a perfect model would lose on the same tokens"},
          {"regret", "nat", Better::none, false, Role::covariate, true,
           "loss - oracle over all ranks; must stay in its band"},
          {"overlap", "1", Better::higher, false, Role::covariate, true, "1 - exposed / communication"},
          {"gradient_norm", "1", Better::none, false, Role::covariate, true,
           "Euclidean norm of the mean gradient"},
          errors("digests of this rank that differ from what they must be")};
}

/// Of the whole case beside its steps.
Specs job_metrics() {
  Specs all{
      explains("gemm_rate", "FLOP/s", Better::higher,
               "this rank's own best matrix product, all ranks at once"),
      explains("flop_rate", "FLOP/s", Better::higher, "FLOP of a step over its median time"),
      explains("utilization", "1", Better::higher, "flop_rate over gemm_rate (MAMFU)"),
      explains("mfu", "1", Better::higher,
               "flop_rate over the nominal peak of the device, where it is known"),
      explains("jitter", "1", Better::lower, "99th percentile of the step time over its median"),
      explains("drift", "1", Better::lower, "growth of the step time, as a fraction per hour"),
      explains("straggler_relative", "1", Better::higher,
               "the fastest rank's median compute time over this one's"),
      explains("straggler_individual", "1", Better::higher, "this rank's fastest steps over its median")};
  for (const char* stage : {"frontier_data", "frontier_forward", "frontier_backward", "frontier_optimizer"})
    all.push_back(explains(stage, "1", Better::lower,
                           "share of the frontier that this rank led in this stage (while the others wait)"));
  return all;
}

Specs scaling_metrics() {
  return {seconds("alone", "forward and backward pass, one rank of the node at a time"),
          seconds("compute", "the same on all ranks at once, without communication"),
          seconds("communication", "reduction of all gradients, without computing"),
          seconds("together", "both, overlapped"),
          {"hidden", "1", Better::higher, false, Role::covariate, true,
           "share of that communication that the backward pass hid: 1 - exposed / communication"},
          explains("contention", "1", Better::higher, "alone / compute"),
          explains("weak_scaling", "1", Better::higher, "alone / together"),
          explains("overlap_gain", "1", Better::higher,
                   "(compute + communication - together) / min(compute, communication)")};
}

Specs checkpoint_metrics() {
  Specs all;
  add_rate(all, "write", "this rank's shard, written and synced");
  add_rate(all, "write_all", "all shards / the longest time of a rank to write and sync its own");
  add_rate(all, "read", "another rank's shard, read back");
  add_rate(all, "read_all", "all shards / the longest time of a rank to read one back");
  all.push_back({"sync", "s", Better::lower, true, Role::covariate, true, "fsync of this rank's shard"});
  all.push_back({"stall", "1", Better::lower, true, Role::covariate, true,
                 "share of the time that training stood still"});
  all.push_back(explains("moved_share_write", "1", Better::none,
                         "bytes that the kernel sent to storage for this rank / bytes written"));
  all.push_back(explains("moved_share_read", "1", Better::none,
                         "bytes that the kernel fetched from storage for this rank / bytes read"));
  all.push_back(explains("resident_share", "1", Better::none,
                         "largest share of a shard in the page cache before it was read"));
  all.push_back(errors("shards read back wrong, steps wrong after a restart"));
  return all;
}

}  // namespace

const Metrics& metrics() {
  // As compute: power-limited chips differ by 7 % without a fault. All ranks of a job share its clock, but
  // not the computing part.
  const Judging step{MetricClass::step, 0.07};
  Judging shared = step, in_step, storage;
  shared.shared_by = SharedBy::world;
  in_step = shared;
  in_step.in_step = true;
  storage = shared;
  storage.of = MetricClass::storage;
  const Specs steps = step_metrics(step, in_step);
  Specs together = steps;
  for (auto& metric : job_metrics()) together.push_back(std::move(metric));
  static const Metrics all{
      {"alone", "<preset>-alone", step, alone_metrics()},
      {"together", "<preset>-together", shared, together},
      {"lockstep", "<preset>-lockstep", shared, steps},
      {"scaling", "<preset>-scaling", shared, scaling_metrics()},
      {"checkpoint", "<preset>-checkpoint", storage, checkpoint_metrics()},
      {"selftest",
       "selftest-train",
       shared,
       {{"detected", "count", Better::none, true, Role::covariate, true,
         "buckets found corrupted (one was corrupted)"}}},
  };
  return all;
}

}  // namespace assay::train
