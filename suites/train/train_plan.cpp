// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/train/job.hpp"
#include "suites/train/model.hpp"
#include "suites/train/preset.hpp"
#include "topology/oversubscription.hpp"

namespace assay::train {
namespace {

/// FLOP/s that a core reaches in training on a machine that is not fast; times are planned with it.
constexpr double core_flops = 2.5e10;

class Planner {
 public:
  explicit Planner(const PlanInput& input) : input_(input), options_(input.config.options) {
    double cores = 1e9;
    for (const RankPlace& place : input.topology.ranks) cores = std::min(cores, static_cast<double>(place.threads));
    rank_flops_ = core_flops * std::max(1.0, cores) / oversubscription(input.topology);
  }

  std::vector<Case> cases() {
    std::vector<Case> all;
    all.push_back(selftest());
    if (input_.config.level == Level::smoke && !options_.has("train.preset")) return all;
    for (const std::string& name : presets()) {
      all.push_back(alone(name));
      all.push_back(training(name, "lockstep", lockstep_steps(name), true));
      all.push_back(training(name, "together", together_steps(name), true));
      for (Case* c : {&all.back(), &all.back() - 1}) c->parameters["own"] = "compute_throughput";  // see verdict/series.cpp
      all.push_back(scaling(name));
      if (options_.has("train.scratch")) all.push_back(checkpoint(name));
    }
    return all;
  }

 private:
  std::vector<std::string> presets() const {
    if (options_.has("train.preset")) return options_.list("train.preset");
    if (input_.config.level >= Level::standard) return {"tiny", "small"};
    return {"tiny"};
  }

  int lockstep_steps(const std::string& name) const { return name == "tiny" ? 10 : 6; }
  int together_steps(const std::string& name) const {
    if (input_.config.level <= Level::quick) return name == "tiny" ? 120 : 40;
    return name == "tiny" ? 200 : 80;
  }

  /// A machine that is slower than planned for does fewer steps.
  double longest_s() const { return input_.config.level <= Level::quick ? 10 : 60; }

  double step_s(const Preset& preset, std::size_t batch) const {
    return preset.model.flops_per_token() * static_cast<double>(batch * preset.model.length) / rank_flops_ +
           20e-9 * static_cast<double>(preset.model.parameters());
  }

  Case make(const std::string& preset_name, const std::string& what, std::size_t batch, int steps) const {
    const Preset& preset = preset_named(preset_name);
    Case c;
    c.suite = "train";
    c.name = what;
    c.stage = Stage::train;
    c.entities = input_.topology.size();
    c.bytes = memory_bytes(preset.model, batch) + gemm_bytes;
    c.overhead_seconds = 0.05 + 4e-8 * static_cast<double>(preset.model.parameters());
    c.parameters = {{"preset", preset_name}, {"batch", batch}, {"steps", steps}, {"type", "fp32"}};
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = "needs " + format_bytes(c.bytes) + " per rank, the plan may use " +
                         format_bytes(input_.memory_per_rank_bytes);
    return c;
  }

  Case selftest() const {
    Case c = make("tiny", "selftest-train", 1, 1);
    c.required = true;
    c.seconds = c.min_seconds = 0.02;
    c.overhead_seconds = 0.03 * oversubscription(input_.topology);
    c.parameters["checker"] = "train";
    return c;
  }

  Case training(const std::string& name, const std::string& mode, int steps, bool required) const {
    const Preset& preset = preset_named(name);
    const bool given = options_.has("train.steps");
    if (given) steps = count("train.steps", 100000);
    const std::size_t batch =
        options_.has("train.batch") ? static_cast<std::size_t>(count("train.batch", 4096)) : preset.batch;
    Case c = make(name, name + "-" + mode, batch, steps);
    const double one_s = step_s(preset, batch);
    c.required = required;
    c.seconds = given ? steps * one_s : std::min(steps * one_s, longest_s());
    c.min_seconds = given ? c.seconds : std::min(c.seconds, 5 * one_s);
    c.parameters["mode"] = mode;
    if (given) c.parameters["fixed"] = 1;
    return c;
  }

  /// Nobody else runs then, so it belongs to the node, and its ranks are compared like any other part.
  Case alone(const std::string& name) const {
    Case c = training(name, "alone", 1, true);
    c.stage = Stage::node_local;
    c.serial = true;
    c.turns = std::clamp(input_.topology.max_local_size(), 1, 8);
    c.entities = 0;
    for (std::size_t node = 0; node < input_.topology.nodes.size(); ++node)
      c.entities += std::min(c.turns, static_cast<int>(input_.topology.ranks_of(static_cast<int>(node)).size()));
    const double one_s = step_s(preset_named(name), c.parameters.at("batch").get<std::size_t>()) / oversubscription(input_.topology);
    c.min_seconds = 7 * one_s;
    c.seconds = std::max(c.min_seconds, std::min(20 * one_s, longest_s() / 10));
    for (const char* unused : {"steps", "fixed"}) c.parameters.erase(unused);
    c.in_every_pass = true;
    return c;
  }

  Case scaling(const std::string& name) const {
    Case c = training(name, "scaling", 5, false);
    const double one_s = step_s(preset_named(name), c.parameters.at("batch").get<std::size_t>());
    const int turns = std::clamp(input_.topology.max_local_size(), 1, 8);
    c.parameters["steps"] = 5;
    c.parameters["turns"] = turns;
    c.seconds = c.min_seconds = (5.0 * turns / oversubscription(input_.topology) + 12) * one_s;
    return c;
  }

  /// Planned only where the file system under test was named, and then required.
  Case checkpoint(const std::string& name) const {
    const int every = count("train.checkpoint-every", 10000);
    Case c = training(name, "checkpoint", 3 * every, true);
    const Preset& preset = preset_named(name);
    const double bytes = 12.0 * static_cast<double>(preset.model.parameters());
    c.parameters["steps"] = 3 * every;
    c.parameters["every"] = every;
    // A step each, those after the restart again; a disk of 50 MB/s for all ranks together.
    c.seconds = 5 * every * step_s(preset, c.parameters.at("batch").get<std::size_t>()) + 6 * bytes / 5e7;
    c.min_seconds = c.seconds;
    return c;
  }

  int count(const char* option, std::int64_t most) const {
    const std::int64_t n = options_.integer(option);
    if (n < 1 || n > most)
      throw_usage("--" + std::string(option) + ": " + std::to_string(n) + " is not between 1 and " + std::to_string(most));
    return static_cast<int>(n);
  }

  const PlanInput& input_;
  const OptionValues& options_;
  double rank_flops_ = core_flops;
};

}  // namespace

std::vector<Case> plan_cases(const PlanInput& input) { return Planner(input).cases(); }

}  // namespace assay::train
