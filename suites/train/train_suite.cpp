// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_suite.hpp"

#include <fmt/format.h>

#include "product/tuning.hpp"
#include "suites/train/job.hpp"
#include "suites/train/train_plan.hpp"

namespace assay {

std::vector<OptionSpec> TrainSuite::options() const {
  std::vector<OptionSpec> specs(11);
  specs[0] = {"train.preset", OptionKind::choices, "", "which models (default by device and level)", {"tiny", "small", "slice-7b"}, "MODELS"};
  specs[1] = {"train.steps", OptionKind::integer, "", "steps of every training case (default by level)", {}, "N"};
  specs[2] = {"train.batch", OptionKind::integer, "", "sequences per rank and step (default by model)", {}, "N"};
  specs[3] = {"train.scratch", OptionKind::path, "", "write and read checkpoints in this directory (the file system under test)",
              {}, "DIR"};
  specs[4] = {"train.checkpoint-every", OptionKind::integer, "4", "steps between checkpoints", {}, "N"};
  specs[5] = {"train.keep", OptionKind::flag, "", "leave the last checkpoints in --train.scratch", {}, ""};
  specs[6] = {"train.break", OptionKind::choice, "", "break the model on purpose, to see its regret leave the band",
              {"attention"}, "WHAT", false, true};
  specs[7] = {"train.progress", OptionKind::choice, "", "what drives reductions on, to see what it is good for",
              {"thread", "calls", "none"}, "WHAT", false, true};
  specs[8] = {"train.type", OptionKind::choice, "", "how activations and weights are stored (default: bf16 on GPUs, fp32 on the host)",
              {"fp32", "bf16"}, "TYPE"};
  specs[9] = {"train.zero", OptionKind::choice, "0", "1: every rank updates its share of the parameters (ZeRO stage 1)", {"0", "1"}, "STAGE"};
  specs[10] = {"train.comm-pressure", OptionKind::number, "",
               "time of a reduction over time of a backward pass: decides how many sequences a reduction follows on", {}, "R"};
  return specs;
}

std::vector<MetricInfo> TrainSuite::metrics() const {
  std::vector<MetricInfo> all = {
      {"<preset>-alone", "throughput", "token/s", "higher", "the same step on one rank of the node at a time"},
      {"<preset>-alone", "data", "s", "lower", "of that step: making the tokens"},
      {"<preset>-alone", "forward", "s", "lower", "of that step: forward pass and loss"},
      {"<preset>-alone", "backward", "s", "lower", "of that step: backward pass"},
      {"<preset>-alone", "optimizer", "s", "lower", "of that step: AdamW"},
      {"<preset>-alone", "errors", "count", "lower", "steps that gave other bits than the first one"}};
  for (const char* mode : {"together", "lockstep"}) {
    const std::string name = std::string("<preset>-") + mode;
    all.insert(all.end(),
               {{name, "throughput", "token/s", "higher", "tokens of this rank divided by the time of a step"},
                {name, "step", "s", "lower", "one step, from its data to its update"},
                {name, "compute", "s", "lower", "the step without waiting for others: who is slow shows here"},
                {name, "compute_throughput", "token/s", "higher", "tokens of this rank divided by compute: compared between ranks"},
                {name, "data", "s", "lower", "making the tokens"},
                {name, "forward", "s", "lower", "forward pass and loss"},
                {name, "backward", "s", "lower", "backward pass"},
                {name, "optimizer", "s", "lower", "AdamW"},
                {name, "loss", "nat", "none", "cross-entropy per token of this rank's tokens"},
                {name, "oracle", "nat", "none", "what a perfect model would lose on the same tokens"},
                {name, "regret", "nat", "none", "loss - oracle over all ranks; must stay in its band"},
                {name, "gradient_norm", "1", "none", "Euclidean norm of the mean gradient"},
                {name, "errors", "count", "lower", "digests of this rank that differ from what they must be"}});
  }
  const std::string name = "<preset>-together";
  all.insert(all.end(),
             {{name, "exposed", "s", "lower", "communication that the backward pass did not hide"},
              {name, "communication", "s", "lower", "time in which gradients were on their way"},
              {name, "overlap", "1", "higher", "1 - exposed / communication"},
              {name, "gemm_rate", "FLOP/s", "higher", "this rank's own best matrix product, all ranks at once"},
              {name, "flop_rate", "FLOP/s", "higher", "FLOP of a step over its median time"},
              {name, "utilization", "1", "higher", "flop_rate over gemm_rate (MAMFU)"},
              {name, "mfu", "1", "higher", "flop_rate over the nominal peak of the device, where it is known"},
              {name, "jitter", "1", "lower", "99th percentile of the step time over its median"},
              {name, "drift", "1", "lower", "growth of the step time, as a fraction per hour"},
              {name, "straggler_relative", "1", "higher", "the fastest rank's median compute time over this one's"},
              {name, "straggler_individual", "1", "higher", "this rank's fastest steps over its median"}});
  for (const char* stage : {"data", "forward", "backward", "optimizer"})
    all.push_back({name, std::string("frontier_") + stage, "1", "lower",
                   "share of the frontier that this rank led in this stage (who makes all others wait)"});
  all.insert(all.end(),
             {{"<preset>-scaling", "alone", "s", "lower", "forward and backward pass, one rank of the node at a time"},
              {"<preset>-scaling", "compute", "s", "lower", "the same on all ranks at once, without communication"},
              {"<preset>-scaling", "communication", "s", "lower", "reduction of all gradients, without computing"},
              {"<preset>-scaling", "together", "s", "lower", "both, overlapped"},
              {"<preset>-scaling", "hidden", "1", "higher", "share of that communication that the backward pass hid: 1 - exposed / communication"},
              {"<preset>-scaling", "contention", "1", "higher", "alone / compute"},
              {"<preset>-scaling", "weak_scaling", "1", "higher", "alone / together"},
              {"<preset>-scaling", "overlap_gain", "1", "higher",
               "(compute + communication - together) / min(compute, communication)"},
              {"<preset>-checkpoint", "write", "B/s", "higher", "this rank's shard, written and synced"},
              {"<preset>-checkpoint", "write_all", "B/s", "higher", "all shards, to the last rank's sync"},
              {"<preset>-checkpoint", "read", "B/s", "higher", "another rank's shard, read back and checked"},
              {"<preset>-checkpoint", "read_all", "B/s", "higher", "all shards, to the last rank's end"},
              {"<preset>-checkpoint", "sync", "s", "lower", "fsync of this rank's shard"},
              {"<preset>-checkpoint", "stall", "1", "lower", "share of the time that training stood still"},
              {"<preset>-checkpoint", "errors", "count", "lower", "shards read back wrong, steps wrong after a restart"},
              {"selftest-train", "detected", "count", "none", "buckets found corrupted (one was corrupted)"}});
  return all;
}

std::vector<Case> TrainSuite::plan(const PlanInput& input) const { return train::plan_cases(input); }

namespace {

/// What decides which products a case computes.
std::string products_key(const train::Job& job) {
  return fmt::format("{}x{} {}", job.preset.model.width, job.preset.batch * job.preset.model.length, to_string(job.type));
}

/// "2048x2304x768 id=66 tile=20 ..." one after the other.
std::string word_of(const Matmul& p, const GemmAlgorithm& algorithm) {
  return fmt::format("{}{}x{}x{}{}{} {}", p.transpose_a ? "t" : "", p.m, p.n, p.k, p.transpose_b ? "t" : "", p.output == Output::exact ? " fp32" : "",
                     algorithm.name);
}

}  // namespace

/// All products of the models, and the square one that their speed is compared with.
void TrainSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world, const std::function<bool()>& go_on) {
  for (const Case& c : cases) {
    if (c.suite != name() || !c.not_applicable.empty() || !c.parameters.contains("preset") || !c.parameters.contains("batch")) continue;
    const train::Job job = train::job_from(c, device);
    const std::string key = products_key(job);
    if (algorithms_.contains(key)) continue;
    std::string& words = algorithms_[key];
    std::vector<Matmul> products = train::Gpt::products(job.preset.model, job.preset.batch);
    const std::size_t n = train::gemm_rows(device.kind(), job.preset.model);
    products.push_back(plain_product(job.type, {n, n, n}));
    for (const Matmul& product : products) {
      const auto found = tune_for_all(device, world, job.type, product, config.seed, go_on);
      if (found) words += (words.empty() ? "" : "; ") + word_of(product, *found);
    }
  }
}

void TrainSuite::run(const Case& c, Context& context) {
  if (c.parameters.contains("preset") && c.parameters.contains("batch")) {
    const auto words = algorithms_.find(products_key(train::job_from(c, context.device)));
    if (words != algorithms_.end() && !words->second.empty()) context.record.parameter("algorithms", words->second);
  }
  if (c.parameters.contains("checker")) return train::run_selftest(c, context);
  const std::string mode = c.parameters.at("mode");
  if (mode == "alone") return train::run_alone(c, context);
  if (mode == "lockstep") return train::run_lockstep(c, context);
  if (mode == "scaling") return train::run_scaling(c, context);
  if (mode == "checkpoint") return train::run_checkpoint(c, context);
  train::run_together(c, context);
}

}  // namespace assay
