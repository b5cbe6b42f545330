// SPDX-License-Identifier: Apache-2.0
#include "verdict/nested.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"

namespace assay::verdict {
namespace {

struct Parts {
  std::vector<std::vector<std::size_t>> of;  ///< values of each node
  double per_node = 0;                       ///< values of a node, harmonic mean
};

Parts parts_of(std::span<const std::int32_t> node, std::vector<std::size_t>& node_of) {
  Parts parts;
  std::map<std::int32_t, std::size_t> place;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto [it, fresh] = place.try_emplace(node[i], parts.of.size());
    if (fresh) parts.of.emplace_back();
    parts.of[it->second].push_back(i);
    node_of.push_back(it->second);
  }
  double inverse = 0;
  for (const auto& values : parts.of) inverse += 1 / static_cast<double>(values.size());
  if (!parts.of.empty()) parts.per_node = static_cast<double>(parts.of.size()) / inverse;
  return parts;
}

}  // namespace

double median_of_others(std::span<const double> values, const std::vector<std::size_t>& of,
                        std::size_t without) {
  std::vector<double> others;
  for (const auto i : of)
    if (i != without) others.push_back(values[i]);
  return median(others);
}

Nested nested(std::span<const double> values, std::span<const std::int32_t> node, double noise) {
  Nested out;
  out.effective = static_cast<double>(values.size());
  if (std::any_of(node.begin(), node.end(), [](std::int32_t n) { return n < 0; })) return out;
  const Parts parts = parts_of(node, out.node_of);
  const double nodes = static_cast<double>(parts.of.size());
  if (parts.of.size() < constants::peers_min_population || parts.per_node < 1.5) return out;

  std::vector<double> medians, scaled;
  for (const auto& of : parts.of) {
    std::vector<double> own;
    double sum = 0;
    for (const auto i : of) {
      own.push_back(values[i]);
      sum += values[i];
    }
    const double m = static_cast<double>(own.size());
    for (const double v : own) scaled.push_back((v - sum / m) * std::sqrt(m / std::max(1.0, m - 1)));
    medians.push_back(median(own));
  }
  const double within = std::pow(mad_sigma(scaled), 2), between = std::pow(mad_sigma(medians), 2);
  // A median of three or more has pi/2 times the variance of a mean.
  const double expected = within / parts.per_node * (parts.per_node < 2.5 ? 1.0 : 1.57);
  const double real = between - expected;
  if (!(real > 0)) return out;
  const double share = real / (real + within);
  // Three errors of a variance of so many nodes.
  if (share < constants::nested_share || between < expected * (1 + 3 * std::sqrt(2 / nodes))) return out;
  out.tells = true;
  out.share = share;
  out.effective = static_cast<double>(values.size()) / (1 + (parts.per_node - 1) * out.share);
  out.nodes = abnormality(medians, within > 0 ? noise * std::sqrt(expected / within) : 0.0);
  // What devices add to their node's median is light-tailed.
  out.nodes.real *= std::sqrt(real / between);
  out.off.assign(values.size(), 0.0);
  out.others.assign(values.size(), 0);
  for (const auto& of : parts.of)
    for (const auto i : of) {
      out.others[i] = of.size() - 1;
      if (of.size() > 1) out.off[i] = values[i] - median_of_others(values, of, i);
    }
  out.within = abnormality(out.off, noise);
  return out;
}

}  // namespace assay::verdict
