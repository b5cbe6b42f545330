// SPDX-License-Identifier: Apache-2.0
#include "suites/train/source.hpp"

#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace assay::train {

LagSource::LagSource(const SourceShape& shape, const RandomStream& random)
    : shape_(shape), tokens_(random.child("tokens")) {
  if (shape.choices == 0 || shape.choices > shape.vocabulary)
    throw Error(ErrorKind::internal, "train: a token cannot have more successors than there are tokens");
  const double whole = 1 - std::exp2(-static_cast<double>(shape.choices));
  double sum = 0;
  for (std::size_t c = 0; c < shape.choices; ++c) {
    weights_.push_back(std::exp2(-static_cast<double>(c + 1)) / whole);
    cumulative_.push_back(sum += weights_.back());
  }
  const RandomStream table = random.child("successors");
  std::vector<std::int32_t> order(shape.vocabulary);
  for (std::size_t token = 0; token < shape.vocabulary; ++token) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
    // The first steps of a Fisher-Yates shuffle: distinct successors.
    for (std::size_t c = 0; c < shape.choices; ++c) {
      std::swap(order[c], order[c + table.below(token * shape.choices + c, shape.vocabulary - c)]);
      successors_.push_back(order[c]);
    }
  }
}

double LagSource::entropy() const noexcept {
  double h = 0;
  for (const double w : weights_) h -= w * std::log(w);
  return h;
}

double LagSource::sequence(std::uint64_t number, std::span<std::int32_t> tokens,
                           std::span<std::int32_t> targets) const {
  const std::size_t length = tokens.size();
  const RandomStream random(mix64(tokens_.key(), number));
  std::vector<std::int32_t> all(length + 1);
  double lost = 0;
  for (std::size_t j = 0; j <= length; ++j) {
    if (j <= shape_.lag) {
      all[j] = static_cast<std::int32_t>(random.below(j, shape_.vocabulary));
    } else {
      const double u = random.uniform(j);
      std::size_t c = 0;
      while (c + 1 < shape_.choices && u >= cumulative_[c]) ++c;
      all[j] = successor(all[j - 1 - shape_.lag], c);
      lost -= std::log(weights_[c]);
    }
    if (j < length) tokens[j] = all[j];
    if (j > 0) targets[j - 1] = j - 1 < shape_.lag ? -1 : all[j];
  }
  return lost;
}

}  // namespace assay::train
