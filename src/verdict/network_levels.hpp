// SPDX-License-Identifier: Apache-2.0
// Which part explains slow pairs: pure functions of centred log rates. A deficit here is the difference of
// natural logarithms: 0.05 is a rate 4.9 % lower.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verdict/network_links.hpp"

namespace assay::verdict::network {

enum class PartKind { leaf, node, end, pair };
enum class Way { both, out, in };  ///< out: only what the part sends is slow
/// What a slow part costs its pairs, of the logarithm.
struct Loss {
  double deficit = 0;
  Way way = Way::both;
};
/// Takes what the parts of its two ends cost out of a pair: it got what the slower of them leaves.
void lift(Pair& p, Loss a, Loss b);

struct SlowPlace {
  PartKind place = PartKind::end;
  int index = -1;  ///< of the leaf, node, end, or pair in the LinkSet
  Way way = Way::both;
  double deficit = 0;                 ///< logarithmic, positive is slower
  double reference = 0;               ///< reference: log rate above the set's centre
  double usual = results::not_taken;  ///< log rate, as measured, of pairs like its own without a suspect
  double p_adjusted = 1;  ///< chance of one such part among healthy ones; NaN where small numbers allow none
  bool strong = false;    ///< worth a warning without a retest
  std::size_t controls = 0;
  int samples = 0;   ///< of a small network
  bool few = false;  ///< too few samples: counts only if cases of other sizes agree
};

struct Options {
  double alpha_screen = 0.10;  ///< per population: selects suspects for the retest
  double alpha_warn = 0.01;    ///< over all levels, directions and sets together: a warning without a retest
  std::size_t sets = 1;        ///< how many sets there are
};

/// Upper quartile (of fewer than four values the largest): congestion and a slow partner only ever lower a
/// value, a slow NIC lowers all of them.
double upper(std::vector<double> values);

/// Scores of the ends: upper quartile over partners, both ways, sent, received; NaN without enough data.
struct EndScores {
  std::vector<double> both, out, in;
  const std::vector<double>& of(Way way) const {
    return way == Way::both ? both : way == Way::out ? out : in;
  }
};
/// Over all pairs, or only those that cross leaves.
EndScores end_scores(const LinkSet& set, bool crossing_only);

/// Parts that are slower than the others, highest level first: what a leaf explains is taken off its nodes,
/// what a node explains off its NICs, what a NIC explains off its pairs. Pairs are at most
/// `max_pair_suspects`, worst first.
std::vector<SlowPlace> localise(LinkSet set, const Options& options);
inline constexpr std::size_t max_pair_suspects = 300;

/// A value far below the others.
struct Low {
  std::size_t index = 0;  ///< in the values given
  double deficit = 0,
         p_adjusted = 1;  ///< logarithmic, positive is slower; chance, times the number of values
};
/// Values (log rates) far below the others, at most `alpha` per call among healthy ones. 24 values or more
/// are judged by a robust predictive deviation; 6 to 23 by deletion t, the lowest one removed at a time; of
/// fewer none is returned.
std::vector<Low> low_outliers(const std::vector<double>& values, double alpha);

/// Few nodes (or the devices of one node): a part is named when all its pairs are slow by 30 % (ranks on
/// shared cores: 50 %) and no pair among the others is; a single slow pair likewise.
std::vector<SlowPlace> small_suspects(const LinkSet& set);

}  // namespace assay::verdict::network
