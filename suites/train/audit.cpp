// SPDX-License-Identifier: Apache-2.0
#include "suites/train/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/bfloat.hpp"

namespace assay::train {
namespace {

constexpr std::size_t updated_elements = 65536, summed_elements = 64;
/// How far the mean loss is moved, in nat, and the parameters of a tensor, as a part of their norm: far above
/// the rounding of a forward pass, small against the curvature. Below `least` rounding decides.
struct Step {
  double loss, parameters, least;
};
constexpr Step step_fp32{0.005, 0.01, 1e-5}, step_bf16{0.03, 0.03, 5e-3};
constexpr double typical_element = 0.03;  ///< of trained parameters
bool is_right(double ratio) { return ratio >= 0.8 && ratio <= 1.25; }

/// AdamW in fp64 on one element, as kernels/adamw.hpp states it.
double updated(const kernels::AdamW& rule, double p, double gradient, double m, double v) {
  const double g = static_cast<double>(rule.gradient_scale) * gradient;
  const double b1 = static_cast<double>(rule.beta1), b2 = static_cast<double>(rule.beta2);
  m = b1 * m + (1 - b1) * g;
  v = b2 * v + (1 - b2) * g * g;
  const double corrected = std::sqrt(v * static_cast<double>(rule.correction2));
  const double direction =
      m * static_cast<double>(rule.correction1) / (corrected + static_cast<double>(rule.epsilon));
  return p - static_cast<double>(rule.rate) * (direction + static_cast<double>(rule.decay) * p);
}

}  // namespace

StepAudit::StepAudit(Gpt& gpt, const RandomStream& random)
    : gpt_(gpt), first_tensor_(random.below(0, gpt.table().tensors().size())) {
  for (const Piece& piece : gpt.share().pieces())
    for (const Bucket& bucket : gpt.table().buckets()) {
      const std::size_t begin = std::max(piece.offset, bucket.offset),
                        end = std::min(piece.offset + piece.size, bucket.offset + bucket.size);
      if (begin >= end) continue;
      const Piece part{begin, end - begin, piece.at + begin - piece.offset, piece.shared};
      const std::size_t count = std::min(part.size, updated_elements);
      places_.push_back({part, random.below(begin, part.size - count + 1), count, {}, {}});
    }
}

/// The largest gradients of the drawn elements: zeros prove nothing about a sum.
void StepAudit::pick(Chosen& place, const std::vector<float>& gradients) {
  std::vector<std::size_t>& picked = place.picked;
  picked.resize(gradients.size());
  std::iota(picked.begin(), picked.end(), std::size_t{0});
  const std::size_t n = std::min(summed_elements, picked.size());
  const auto size = [&](std::size_t i) {  // a NaN has no place in an order
    return std::isnan(gradients[i]) ? std::numeric_limits<float>::infinity() : std::abs(gradients[i]);
  };
  std::partial_sort(picked.begin(), picked.begin() + static_cast<std::ptrdiff_t>(n), picked.end(),
                    [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  picked.resize(n);
  for (const std::size_t i : picked) place.summed.push_back(gradients[i]);
}

std::string StepAudit::name_of(const Piece& piece) const {
  return gpt_.table().buckets()[gpt_.table().bucket_of(piece.offset)].name;
}

std::string StepAudit::update(const kernels::AdamW& rule) {
  std::string wrong;
  for (Chosen& place : places_) {
    const Gpt::UpdateSlice slice = gpt_.update_slice(place.piece, place.begin, place.count);
    pick(place, slice.gradients);
    for (std::size_t i = 0; i < place.count && wrong.empty(); ++i) {
      const double expected =
          updated(rule, static_cast<double>(slice.before[i]), static_cast<double>(slice.gradients[i]),
                  static_cast<double>(slice.m[i]), static_cast<double>(slice.v[i]));
      const double seen = static_cast<double>(slice.after[i]);
      const double rounding = 3e-7 * std::abs(expected) + 1e-4 * static_cast<double>(rule.rate);
      if (!(std::abs(seen - expected) <= rounding))
        wrong = fmt::format("element {} of {} is {:.9g} after the update; AdamW gives {:.9g} from {:.9g}",
                            place.begin + i, name_of(place.piece), seen, expected, slice.before[i]);
      else if (slice.weights[i] != slice.after[i] &&
               slice.weights[i] != kernels::to_float(kernels::to_bfloat(slice.after[i])))
        wrong = fmt::format("element {} of {} is {:.9g}, and its master copy is {:.9g}", place.begin + i,
                            name_of(place.piece), slice.weights[i], slice.after[i]);
    }
  }
  return wrong;
}

std::string StepAudit::reduction(Communicator& ranks) {
  std::vector<double> own;
  std::vector<float> local(updated_elements);
  for (const Chosen& place : places_) {
    local.resize(place.count);
    gpt_.device().copy_to_host(local.data(), gpt_.gradients() + place.piece.offset + place.begin,
                               local.size() * sizeof(float));
    for (const std::size_t i : place.picked) own.push_back(static_cast<double>(local[i]));
  }
  std::vector<double> sums = own;  // and behind them those of the absolute values
  for (const double g : own) sums.push_back(std::abs(g));
  ranks.all_reduce(sums.data(), sums.data(), sums.size(), DataType::fp64, ReduceOp::sum);
  const double rounding = 1.2e-7 * ranks.size();  // of one addition per rank
  std::string wrong;
  double missing = 0, mine = 0;  // squares of what the sums lack, and of that less this rank's part
  std::size_t at = 0;
  for (const Chosen& place : places_)
    for (std::size_t i = 0; i < place.summed.size(); ++i, ++at) {
      const double lack = sums[at] - static_cast<double>(place.summed[i]);
      missing += lack * lack;
      mine += (lack - own[at]) * (lack - own[at]);
      if (!(std::abs(lack) <= rounding * sums[own.size() + at]) && wrong.empty())
        wrong = fmt::format(
            "gradient {} of {} is {:.9g} after the reduction; the fp64 sum over all ranks is {:.9g}",
            place.begin + place.picked[i], name_of(place.piece), place.summed[i], sums[at]);
    }
  const bool left_out = !wrong.empty() && mine < 1e-3 * missing;
  const int who = static_cast<int>(-ranks.min(left_out ? -ranks.rank() : 1.0));
  if (who >= 0) wrong += fmt::format("; those of rank {} are missing", who);
  return wrong;
}

std::optional<double> gradient_ratio(Gpt& gpt, const Tensor& tensor, std::size_t counted) {
  TrainOps& ops = gpt.ops();
  const std::size_t n = tensor.size();
  float* const g = gpt.gradients() + tensor.offset;
  float* const p = gpt.parameters() + tensor.offset;
  const Step& step = gpt.storage().type == NumType::fp32 ? step_fp32 : step_bf16;
  const auto loss_beside = [&](double factor) {
    ops.scale(g, static_cast<float>(factor), n);
    ops.add(p, g, n);
    gpt.to_bf16();
    gpt.forward();
    const double loss = gpt.loss(1.0f) / static_cast<double>(counted);
    gpt.restore();
    return loss;
  };
  const double norm = std::sqrt(ops.sum_squares(g, n));
  if (!std::isfinite(norm)) return norm;
  if (norm == 0) {
    // Right where the loss does not depend on the tensor, as before the first update: its output is
    // multiplied by zeros.
    gpt.device().fill_uniform(NumType::fp32, g, n, tensor.offset + 1);
    const double above = loss_beside(typical_element), below = loss_beside(-1);
    return std::abs(above - below) / 2 < step.least ? std::nullopt : std::optional(0.0);
  }
  const double size =
      std::max(std::sqrt(ops.sum_squares(p, n)), typical_element * std::sqrt(static_cast<double>(n)));
  // Where gradients are small, curvature shows in a large step: a ratio counts when a step of a quarter has
  // it too.
  std::optional<double> last;
  double factor = std::min(step.loss / norm, step.parameters * size) / norm, scaled = 1;
  for (; factor * norm * norm >= step.least; factor /= 4) {
    const double above = loss_beside(factor / scaled), below = loss_beside(-1);
    scaled = -factor;
    const double ratio = (above - below) / (2 * factor * norm * norm);
    if (is_right(ratio) || (last && std::abs(ratio - *last) < 0.05)) return ratio;
    last = ratio;
  }
  return std::nullopt;
}

std::string StepAudit::gradients(std::size_t counted) {
  const std::vector<Tensor>& all = gpt_.table().tensors();
  const std::size_t n = std::min(all.size(), audited_tensors);
  for (std::size_t i = 0; i < n; ++i) {
    const Tensor& tensor = all[(first_tensor_ + i * all.size() / n) % all.size()];
    const double ratio = gradient_ratio(gpt_, tensor, counted).value_or(1);
    if (is_right(ratio)) continue;
    return ratio == 0 ? "the gradients of " + tensor.name + " are zero, and the loss depends on it"
                      : fmt::format("along the gradients of {} the loss changes {:.3f} times as predicted",
                                    tensor.name, ratio);
  }
  return {};
}

}  // namespace assay::train
