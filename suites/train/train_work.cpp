// SPDX-License-Identifier: Apache-2.0
#include "suites/train/train_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/clock.hpp"
#include "measure/sizing.hpp"

namespace assay::train {

TrainWork work_from(const Case& c, const Device& device) {
  TrainWork work;
  work.preset = preset_named(c.parameters.at("preset").get<std::string>(), device.has_own_memory());
  work.steps = c.parameters.value("steps", 0);
  work.fixed = c.parameters.value("fixed", 0) != 0;
  work.preset.batch = c.parameters.at("batch").get<std::size_t>();
  work.preset.model.layers = c.parameters.value("layers", work.preset.model.layers);
  work.type = c.parameters.value("type", std::string("fp32")) == "bf16" ? NumType::bf16 : NumType::fp32;
  work.zero = c.parameters.value("zero", 0) != 0;
  work.pressure = c.parameters.value("comm_pressure", 0.0);
  return work;
}

std::string products_key(const TrainWork& work) {
  return fmt::format("{}x{} {}", work.preset.model.width, work.preset.tokens(), to_string(work.type));
}

std::vector<ModelProduct> products_to_tune(const std::vector<Case>& cases, const Device& device) {
  std::vector<ModelProduct> all;
  std::set<std::string> seen;
  for (const Case& c : cases) {
    if (c.suite != "train" || !c.not_applicable.empty() || !c.parameters.contains("preset") ||
        !c.parameters.contains("batch"))
      continue;
    const TrainWork work = work_from(c, device);
    const std::string key = products_key(work);
    if (!seen.insert(key).second) continue;
    for (const Matmul& product : Gpt::products(work.preset.model, work.preset.batch))
      all.push_back({key, work.type, product});
    const std::size_t n = gemm_rows(device.has_own_memory(), work.preset.model);
    all.push_back({key, work.type, plain_product(work.type, {n, n, n})});
  }
  std::stable_sort(all.begin(), all.end(), [](const ModelProduct& a, const ModelProduct& b) {
    return a.product.flops() < b.product.flops();
  });
  return all;
}

std::size_t gemm_rows(bool on_gpu, const ModelShape& shape) noexcept {
  return on_gpu ? std::min<std::size_t>(8192, 4 * shape.width) : 768;
}

std::size_t gemm_bytes(bool on_gpu, const ModelShape& shape, NumType type) noexcept {
  const std::size_t rows = gemm_rows(on_gpu, shape);
  return 3 * rows * rows * size_of(type) + 64;
}

Replica::Replica(const TrainWork& work, Context& context)
    : source_(work.preset.source, RandomStream(context.config.seed, "train").child("source")),
      gpt_(context.device, work.preset.model, work.preset.batch, context.device.arena(),
           work.storage(replicas_of(context))),
      counted_(work.preset.batch * source_.counted(work.preset.model.length)),
      tokens_(work.preset.tokens()),
      targets_(work.preset.tokens()),
      broken_(context.config.options.text("train.break")) {
  gpt_.initialise(RandomStream(context.config.seed, "train").child("parameters"));
  if (broken_ == "attention") gpt_.break_attention();
  if (broken_ == "layer") gpt_.freeze_first_layer();
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
  gpt_.score(1.0f / static_cast<float>(counted_));
}

TrainWork fitted(TrainWork work, double step_s, Context& context) {
  if (work.fixed || work.preset.batch == 1) return work;
  TrainWork one = work;
  one.preset.batch = 1;
  double least_s = std::numeric_limits<double>::infinity();
  Replica replica(one, context);
  replica.load(0);
  for (int tries = 0; tries < 2; ++tries) {  // the first starts the library's threads
    const double begin = now_s();
    replica.forward();
    replica.gpt().backward(nullptr, nullptr);
    context.device.synchronize();
    context.apply_injected_delay(begin, 1, true);
    context.count_batch();
    least_s = std::min(least_s, now_s() - begin);
  }
  const double worst_s = context.world.max(least_s);
  const std::size_t planned = work.preset.batch;
  if (worst_s * static_cast<double>(planned) <= size_patience * step_s) return work;
  work.preset.batch = fitted_count(planned, worst_s, step_s);
  context.record.parameter("sequences", work.preset.batch);
  if (least_s >= worst_s)
    context.record.event("train-cut-short",
                         fmt::format("steps of {} instead of {} sequences: one sequence takes {:.3g} s",
                                     work.preset.batch, planned, worst_s),
                         context.device_entity);
  return work;
}

Communicator& replicas_of(Context& context) { return context.world; }

void end_region(Context& context, double begin_s) {
  // A fault made on purpose slows the host down by the time that passed: it must have passed.
  if (context.injector != nullptr) context.device.synchronize();
  context.apply_injected_delay(begin_s, 1);
}

Progress progress_of(const Context& context) {
  const std::string name = context.config.options.text("train.progress");
  return name == "none" ? Progress::none : name == "calls" ? Progress::calls : Progress::thread;
}

std::string name_of_rank(const Context& context, int rank) {
  const int row = context.entities.device_of_rank(rank);
  return "rank " + std::to_string(rank) + " (" + context.entities.name(row) + ")";
}

}  // namespace assay::train
