// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "suites/train/checkpoint_folder.hpp"
#include "suites/train/train_metrics.hpp"
#include "suites/train/train_plan.hpp"
#include "suites/train/train_work.hpp"
#include "workload/tuning.hpp"

namespace assay {

std::vector<OptionSpec> TrainSuite::options() const {
  std::vector<OptionSpec> specs(11);
  specs[0] = {"train.preset",
              OptionKind::choices,
              "",
              "models (default by device and level)",
              {"tiny", "small", "slice-7b"},
              "MODELS"};
  specs[1] = {
      "train.steps", OptionKind::integer, "", "steps of every training case (default by level)", {}, "N"};
  specs[2] = {
      "train.batch", OptionKind::integer, "", "sequences per rank and step (default by model)", {}, "N"};
  specs[3] = {"train.scratch",
              OptionKind::path,
              "",
              "directory for checkpoints, on the file system under test",
              {},
              "DIR"};
  specs[4] = {"train.checkpoint-every", OptionKind::integer, "4", "steps between checkpoints", {}, "N"};
  specs[5] = {"train.keep", OptionKind::flag, "", "leave the last checkpoints in --train.scratch", {}, ""};
  specs[6] = {"train.break",
              OptionKind::choice,
              "",
              "break training for a test: no attention, no or half the learning rate, a "
              "frozen layer, the last rank's gradients left out",
              {"attention", "learning", "rate", "layer", "rank"},
              "WHAT",
              false,
              true};
  specs[7] = {"train.progress",
              OptionKind::choice,
              "",
              "what drives reductions on, to see what it is good for",
              {"thread", "calls", "none"},
              "WHAT",
              false,
              true};
  specs[8] = {"train.type",
              OptionKind::choice,
              "",
              "number type of activations and weights (default: bf16 on GPUs, fp32 on the host)",
              {"fp32", "bf16"},
              "TYPE"};
  specs[9] = {"train.zero", OptionKind::choice,
              "0",          "1: every rank updates its share of the parameters (ZeRO stage 1)",
              {"0", "1"},   "STAGE"};
  specs[10] = {"train.comm-pressure",
               OptionKind::number,
               "",
               "target ratio of all-reduce time to backward time; the number of sequences per reduction is "
               "chosen to meet it",
               {},
               "R"};
  const std::pair<std::size_t, Range> ranges[] = {
      {1, {1, 100000}}, {2, {1, 4096}}, {4, {1, 10000}}, {10, {0.01, 100}}};
  for (const auto& [option, range] : ranges) specs[option].range = range;
  return specs;
}

std::vector<results::MetricSpec> TrainSuite::metrics() const { return train::metrics().all(); }

std::vector<Case> TrainSuite::plan(const PlanInput& input) const { return train::plan_cases(input); }

namespace {

/// "2048x2304x768 id=66 tile=20 ..." one after the other.
std::string word_of(const Matmul& p, const GemmAlgorithm& algorithm) {
  return fmt::format("{}{}x{}x{}{}{} {}", p.transpose_a ? "t" : "", p.m, p.n, p.k, p.transpose_b ? "t" : "",
                     p.output == Output::exact ? " fp32" : "", algorithm.name);
}

}  // namespace

void TrainSuite::prepare(const std::vector<Case>& cases, const Config& config, Device& device,
                         Communicator& world, const std::function<bool()>& go_on) {
  tuned_.clear();  // what was found for the segment of a soak before this one
  for (const train::ModelProduct& p : train::products_to_tune(cases, device)) {
    const auto found = workload::tune_for_all(device, world, p.type, p.product, config.seed, go_on);
    Tuned& tuned = tuned_[p.key];
    ++tuned.products;
    if (found) tuned.algorithms.push_back(word_of(p.product, *found));
  }
}

std::function<void(pid_t)> TrainSuite::clean_up(const Config& config) const {
  if (!config.options.has("train.scratch")) return {};
  return [scratch = config.options.text("train.scratch")](pid_t killed) {
    train::remove_leftovers(scratch, killed);
  };
}

void TrainSuite::run(const Case& c, Context& context) {
  if (c.parameters.contains("preset") && c.parameters.contains("batch")) {
    const auto tuned = tuned_.find(train::products_key(train::work_from(c, context.device)));
    if (tuned != tuned_.end() && context.device.has_own_memory()) {
      context.record.parameter("algorithms", fmt::format("{}", fmt::join(tuned->second.algorithms, "; ")));
      context.record.parameter("products_not_tuned",
                               tuned->second.products - tuned->second.algorithms.size());
    }
  }
  if (c.operation == "selftest") return train::run_selftest(c, context);
  if (c.operation == "alone") return train::run_alone(c, context);
  if (c.operation == "lockstep") return train::run_lockstep(c, context);
  if (c.operation == "scaling") return train::run_scaling(c, context);
  if (c.operation == "checkpoint") return train::run_checkpoint(c, context);
  train::run_together(c, context);
}

}  // namespace assay
