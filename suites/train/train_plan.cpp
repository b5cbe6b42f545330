// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/train/audit.hpp"
#include "suites/train/model.hpp"
#include "suites/train/preset.hpp"
#include "suites/train/train_work.hpp"
#include "topology/oversubscription.hpp"

namespace assay::train {
namespace {

/// FLOP/s that a core, and a GPU in a number type, reaches in training on a machine that is not fast; times
/// are planned with it.
constexpr double core_flops = 2.5e10, gpu_flops_bf16 = 1e14, gpu_flops_fp32 = 5e12;

class Planner {
 public:
  Planner(const PlanInput& input, bool on_gpus)
      : input_(input), options_(input.config.options), gpu_(on_gpus), type_(type_of(options_, gpu_)) {
    if (gpu_) {
      rank_flops_ = type_ == NumType::bf16 ? gpu_flops_bf16 : gpu_flops_fp32;
      return;
    }
    double cores = 1e9;
    for (const RankPlace& place : input.topology.ranks)
      cores = std::min(cores, static_cast<double>(place.threads));
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
      for (Case* c : {&all.back(), &all.back() - 1})
        c->parameters["own"] = "compute_throughput";  // in the keys of these cases, which must stay
      all.push_back(scaling(name));
      if (options_.has("train.scratch")) all.push_back(checkpoint(name));
    }
    return all;
  }

 private:
  std::vector<std::string> presets() const {
    if (options_.has("train.preset")) return options_.list("train.preset");
    const bool long_one = input_.config.level >= Level::standard;
    if (gpu_)
      return long_one ? std::vector<std::string>{"small", "slice-7b"} : std::vector<std::string>{"small"};
    return long_one ? std::vector<std::string>{"tiny", "small"} : std::vector<std::string>{"tiny"};
  }

  static NumType type_of(const OptionValues& options, bool gpu) {
    const std::string text = options.has("train.type") ? options.text("train.type") : gpu ? "bf16" : "fp32";
    if (text == "bf16" && !gpu) throw_usage("--train.type: the host device trains in fp32 only");
    return text == "bf16" ? NumType::bf16 : NumType::fp32;
  }
  const Preset& preset_of(const std::string& name) const { return preset_named(name, gpu_); }

  int lockstep_steps(const std::string& name) const { return name == "tiny" ? 10 : 6; }
  int together_steps(const std::string& name) const {
    if (input_.config.level <= Level::quick) return name == "tiny" ? 120 : 40;
    return name == "tiny" ? 200 : 80;
  }

  /// A machine that is slower than planned for does fewer steps.
  double longest_s() const { return input_.config.level <= Level::quick ? 10 : 60; }

  double step_s(const Case& c) const {
    const Preset& preset = preset_of(c.parameters.at("preset").get<std::string>());
    const ModelShape model = with_layers(preset.model, c.parameters.value("layers", preset.model.layers));
    const auto tokens = static_cast<double>(c.parameters.at("batch").get<std::size_t>() * model.length);
    return model.flops_per_token() * tokens / rank_flops_ +
           (gpu_ ? 5e-11 : 20e-9) * static_cast<double>(model.parameters());
  }

  static ModelShape with_layers(ModelShape model, std::size_t layers) {
    model.layers = layers;
    return model;
  }

  /// Of a case of this mode: only `together` takes part in what is asked for about updates and reductions.
  Storage storage(const std::string& mode) const {
    Storage storage{type_, 0, 1, false};
    if (mode != "together") return storage;
    if (options_.has("train.zero") && options_.text("train.zero") == "1")
      storage.parts = input_.topology.size();
    storage.several_passes = options_.has("train.comm-pressure");
    return storage;
  }

  /// As many layers as fit, by halves of the model's: a little more or less memory must not make another
  /// model.
  std::size_t layers_for(const Preset& preset, std::size_t batch, const Storage& storage) const {
    std::size_t layers = preset.model.layers;
    const auto bytes = [&] {
      const ModelShape model = with_layers(preset.model, layers);
      return memory_bytes(model, batch, storage) + gemm_bytes(gpu_, model, type_);
    };
    while (preset.least_layers > 0 && layers > preset.least_layers && bytes() > input_.memory_per_rank_bytes)
      layers /= 2;
    return layers;
  }

  Case make(const std::string& preset_name, const std::string& what, const std::string& mode,
            std::size_t batch, int steps) const {
    const Preset& preset = preset_of(preset_name);
    const Storage stored = storage(mode);
    // All cases of a preset train the same model.
    const ModelShape model = with_layers(
        preset.model, layers_for(preset, batch, {type_, 0, 1, options_.has("train.comm-pressure")}));
    Case c;
    c.suite = "train";
    c.multiplies = true;
    c.name = what;
    c.operation = mode;
    c.stage = Stage::train;
    c.entities = input_.topology.size();
    c.bytes = memory_bytes(model, batch, stored) + gemm_bytes(gpu_, model, type_);
    c.overhead_seconds = 0.05 + (gpu_ ? 2e-10 : 4e-8) * static_cast<double>(model.parameters());
    c.parameters = {{"preset", preset_name}, {"batch", batch}, {"steps", steps}, {"type", to_string(type_)}};
    if (preset.least_layers > 0) c.parameters["layers"] = model.layers;
    if (stored.parts > 1) c.parameters["zero"] = 1;
    if (stored.several_passes) c.parameters["comm_pressure"] = options_.number("train.comm-pressure");
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = "needs " + format_bytes(c.bytes) + " per rank, the plan may use " +
                         format_bytes(input_.memory_per_rank_bytes);
    return c;
  }

  Case selftest() const {
    Case c = make("tiny", "selftest-train", "selftest", 1, 1);
    c.required = true;
    c.seconds = c.min_seconds = 0.02;
    c.overhead_seconds = 0.03 * oversubscription(input_.topology);
    c.parameters["checker"] = "train";
    return c;
  }

  Case training(const std::string& name, const std::string& mode, int steps, bool required) const {
    const Preset& preset = preset_of(name);
    const bool given = options_.has("train.steps");
    if (given) steps = count("train.steps");
    const std::size_t batch =
        options_.has("train.batch") ? static_cast<std::size_t>(count("train.batch")) : preset.batch;
    Case c = make(name, name + "-" + mode, mode, batch, steps);
    c.title = name + " GPT, " +
              (mode == "alone"      ? together_words(gpu_, false)
               : mode == "together" ? "all ranks together"
                                    : mode);
    const double one_s = step_s(c);
    c.required = required;
    c.seconds = given ? steps * one_s : std::min(steps * one_s, longest_s());
    c.min_seconds = given ? c.seconds : std::min(c.seconds, 5 * one_s);
    if (mode == "together") {
      // The audit of the last step: a pass, and two forward passes (a third of a step each) per tensor.
      const std::size_t layers = c.parameters.value("layers", preset.model.layers);
      c.overhead_seconds +=
          (1 + 2.0 / 3 * static_cast<double>(std::min(4 * layers + 2, audited_tensors))) * one_s;
    }
    c.parameters["mode"] = mode;
    if (given) c.parameters["fixed"] = 1;
    return c;
  }

  /// No other rank runs then, so it belongs to the node, and its ranks are compared like any other part.
  Case alone(const std::string& name) const {
    Case c = training(name, "alone", 1, true);
    c.stage = Stage::node_local;
    c.serial = true;
    c.turns = std::clamp(input_.topology.max_local_size(), 1, 8);
    c.entities = input_.topology.ranks_up_to(c.turns);
    const double one_s = step_s(c) / oversubscription(input_.topology);
    c.min_seconds = 7 * one_s;
    c.seconds = std::max(c.min_seconds, std::min(20 * one_s, longest_s() / 10));
    for (const char* unused : {"steps", "fixed"}) c.parameters.erase(unused);
    c.in_every_pass = true;
    return c;
  }

  Case scaling(const std::string& name) const {
    Case c = training(name, "scaling", 5, false);
    const double one_s = step_s(c);
    const int turns = std::clamp(input_.topology.max_local_size(), 1, 8);
    c.parameters["steps"] = 5;
    c.parameters["turns"] = turns;
    c.seconds = c.min_seconds = (5.0 * turns / oversubscription(input_.topology) + 12) * one_s;
    return c;
  }

  /// Planned only where the file system under test was named, and then required.
  Case checkpoint(const std::string& name) const {
    const int every = count("train.checkpoint-every");
    Case c = training(name, "checkpoint", 3 * every, true);
    const ModelShape model = preset_of(name).model;
    const double bytes =
        12.0 *
        static_cast<double>(with_layers(model, c.parameters.value("layers", model.layers)).parameters());
    c.parameters["steps"] = 3 * every;
    c.parameters["every"] = every;
    c.parameters["path"] = options_.text("train.scratch");
    // A step each, those after the restart again; a disk of 50 MB/s for all ranks together, beside GPUs what
    // checkpoints of their models need of a file system.
    const double rate = gpu_ ? 5e8 * static_cast<double>(input_.topology.nodes.size()) : 5e7;
    const double files_s = 6 * bytes / rate;
    c.seconds = 5 * every * step_s(c) + files_s;
    c.min_seconds = c.seconds;
    if (!c.not_applicable.empty()) return c;
    if (files_s > input_.config.budget_s() / 4)
      c.not_applicable = "writing and reading " + format_bytes(static_cast<std::uint64_t>(bytes)) +
                         " six times at " + format_bytes(static_cast<std::uint64_t>(rate)) +
                         "/s takes over a quarter of the time";
    else if (const double free = host_bytes(c.bytes); bytes > free)
      c.not_applicable = "each rank holds a whole checkpoint of " +
                         format_bytes(static_cast<std::uint64_t>(bytes)) + " in host memory, and may use " +
                         format_bytes(static_cast<std::uint64_t>(std::max(free, 0.0))) + " for it";
    return c;
  }

  /// Host memory of a rank beside the `arena` of a case: what is left of the plan's, or half of what is
  /// available where the arena is on the GPU.
  double host_bytes(std::uint64_t arena) const {
    if (!gpu_) return static_cast<double>(input_.memory_per_rank_bytes) - static_cast<double>(arena);
    double least = std::numeric_limits<double>::infinity();
    for (const Node& node : input_.topology.nodes)
      least = std::min(least, static_cast<double>(node.memory_available_bytes));
    return least / 2 / std::max(1, input_.topology.max_local_size());
  }

  int count(const char* option) const { return static_cast<int>(options_.integer(option)); }

  const PlanInput& input_;
  const OptionValues& options_;
  bool gpu_;
  NumType type_;
  double rank_flops_ = core_flops;
};

}  // namespace

std::vector<Case> plan_cases(const PlanInput& input, bool on_gpus) { return Planner(input, on_gpus).cases(); }
std::vector<Case> plan_cases(const PlanInput& input) {
  return plan_cases(input, input.topology.measures_gpus());
}

}  // namespace assay::train
