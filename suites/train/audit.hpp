// SPDX-License-Identifier: Apache-2.0
// Whether a step of training did what it must: each part of it against values that are computed another way.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kernels/adamw.hpp"
#include "suites/train/gpt.hpp"
#include "transport/communicator.hpp"

namespace assay::train {

/// Tensors whose gradients are audited, where a model has more.
inline constexpr std::size_t audited_tensors = 10;

/// Audits the last step of a replica at any step count, where a band of regret needs many steps: the update
/// against AdamW computed element by element, the sum of gradients against what each rank has to add, and the
/// gradients against the change of the loss. The calls come in this order, after Gpt::save(), a pass and
/// Gpt::update(). Each returns what is wrong in words, empty where nothing is.
class StepAudit {
 public:
  /// Draws the elements; the same ones on all ranks that have the same share.
  StepAudit(Gpt& gpt, const RandomStream& random);

  /// Masters after the update, and weights rounded from them, against `rule` on what save() kept and on the
  /// gradients that update() read. At most 65536 elements of each bucket.
  std::string update(const kernels::AdamW& rule);

  /// Collective. After update(), restore() and a pass without reduction: the sums that update() read against
  /// those of the gradients of all ranks, in fp64. The 64 largest of those elements of each bucket; one part,
  /// one pass per update.
  std::string reduction(Communicator& ranks);

  /// After the same pass: moves the parameters of each tensor, at most `audited_tensors` of them, along its
  /// gradient and back. Leaves parameters as save() kept them. `counted`: targets of the pass. One part.
  std::string gradients(std::size_t counted);

 private:
  struct Chosen {
    Piece piece;
    std::size_t begin = 0, count = 0;  ///< elements of the piece
    std::vector<std::size_t> picked;   ///< of these elements, for the sum over ranks
    std::vector<float> summed;         ///< their gradients as update() read them
  };
  static void pick(Chosen& place, const std::vector<float>& gradients);

  std::string name_of(const Piece& piece) const;

  Gpt& gpt_;
  std::size_t first_tensor_;
  std::vector<Chosen> places_;
};

/// The change of the mean loss when the parameters of a tensor move by a small step along their gradient and
/// against it (central difference), as a multiple of what the gradient predicts. 0 where the gradient is zero
/// and the loss changes with the tensor all the same; nothing where a change cannot be seen in the loss. The
/// gradients of the tensor are overwritten, the parameters are those of save().
std::optional<double> gradient_ratio(Gpt& gpt, const Tensor& tensor, std::size_t counted);

}  // namespace assay::train
