// SPDX-License-Identifier: Apache-2.0
// One case as Case::parameters describe it, and the replica it works on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suite/suite.hpp"
#include "suites/train/gpt.hpp"
#include "suites/train/preset.hpp"
#include "suites/train/reducer.hpp"
#include "suites/train/source.hpp"

namespace assay::train {

struct TrainWork {
  Preset preset;  ///< with the batch and the layers of this case
  int steps = 0;
  bool fixed = false;  ///< the number of steps was asked for: time does not end the case
  NumType type = NumType::fp32;
  bool zero = false;    ///< ZeRO stage 1: every rank updates its share
  int passes = 1;       ///< of `preset.batch` sequences each, every one reduced, for one update
  double pressure = 0;  ///< --train.comm-pressure; 0: not asked for

  Storage storage(const Communicator& ranks) const noexcept {
    return {type, zero ? ranks.rank() : 0, zero ? ranks.size() : 1, pressure > 0};
  }
  /// Per rank and step.
  std::size_t tokens() const noexcept { return preset.tokens() * static_cast<std::size_t>(passes); }
};
TrainWork work_from(const Case& c, const Device& device);

/// A product of a model, of all cases with equal `key` (width, tokens and type).
struct ModelProduct {
  std::string key;
  NumType type = NumType::fp32;
  Matmul product;
};
std::string products_key(const TrainWork& work);
/// All products of the cases' models, and the square ones that their speed is compared with; the quickest
/// first, so that a large model leaves time to tune those of a small one, which gain more.
std::vector<ModelProduct> products_to_tune(const std::vector<Case>& cases, const Device& device);

/// Rows of the square matrices that this run's own GEMM rate is measured with; they lie behind the model in
/// the arena. On a GPU four widths, as the largest products of training.
std::size_t gemm_rows(bool on_gpu, const ModelShape& shape) noexcept;
std::size_t gemm_bytes(bool on_gpu, const ModelShape& shape, NumType type) noexcept;

/// The work with as many sequences per step as the slowest rank gets through in `step_s`, where the planned
/// ones would take it much longer; unchanged where the number of steps was asked for. Measured with a replica
/// of one sequence in the same memory. Collective.
TrainWork fitted(TrainWork work, double step_s, Context& context);

/// A model with its data: what one rank trains.
class Replica {
 public:
  /// Parameters and source from the run's seed, equal on all ranks and in all cases of a preset.
  Replica(const TrainWork& work, Context& context);

  /// Generates and loads the `batch` sequences from number `first` on.
  void load(std::uint64_t first);
  /// Forward pass and loss; the gradients are those of the mean over this rank's counted targets.
  void forward();

  Gpt& gpt() noexcept { return gpt_; }
  const LagSource& source() const noexcept { return source_; }
  double loss_sum() { return gpt_.loss_sum(); }  ///< nat, of the last forward(); waits for the device
  double oracle_sum() const noexcept { return oracle_sum_; }      ///< nat, of the last load()
  std::size_t counted() const noexcept { return counted_; }       ///< targets
  const std::string& broken() const noexcept { return broken_; }  ///< --train.break: what is wrong on purpose

 private:
  LagSource source_;
  Gpt gpt_;
  std::size_t counted_ = 0;
  double oracle_sum_ = 0;
  std::vector<std::int32_t> tokens_, targets_;
  std::string broken_;
};

/// How reductions are driven in this run: by a thread unless the hidden option --train.progress says
/// otherwise.
Progress progress_of(const Context& context);

/// The ranks whose gradients are summed, over a transport that reaches the memory of their devices.
Communicator& replicas_of(Context& context);

/// Ends a timed region of the device's work, see Context::apply_injected_delay.
void end_region(Context& context, double begin_s);

/// "rank 3 (node07/cores0-3)"
std::string name_of_rank(const Context& context, int rank);

void run_alone(const Case& c, Context& context);
void run_together(const Case& c, Context& context);
void run_lockstep(const Case& c, Context& context);
void run_scaling(const Case& c, Context& context);
void run_checkpoint(const Case& c, Context& context);
void run_selftest(const Case& c, Context& context);

}  // namespace assay::train
