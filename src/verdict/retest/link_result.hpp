// SPDX-License-Identifier: Apache-2.0
// Results of the retest cases (NAME.cK) for slow places of the network.
#pragma once

#include <memory>
#include <vector>

#include "verdict/network_paths.hpp"
#include "verdict/network_screen.hpp"

namespace assay::verdict::network {

/// The retest cases of a series: none, or all pairs of them, centred on those of the controls.
struct LinkRetest {
  LinkSet set;                    ///< `ends` are those of the screening set, in the same order, then new ones
  std::vector<bool> slow_end;     ///< a suspect by itself or as a part of its node
  std::vector<bool> control_end;  ///< measured against other controls often enough to be one
  std::vector<std::vector<double>> control_pairs;  ///< values of each pair of controls
  std::vector<Loss> leaf_loss;  ///< of suspect leaves, by leaf index: it is not held against others
  Paths paths;                  ///< slow ones of the screening
  LinkSet less_paths;           ///< `set` without what these cost: for nodes and NICs
  int cases = 0;                ///< number of retest cases
  std::vector<bool> apart;      ///< by suspect: no control here
  /// In which all suspects are kept apart: for those that are controls here. Null where none is.
  std::shared_ptr<const LinkRetest> all_apart;
};
LinkRetest link_retest(const Judgement& j, const Places& places, const Screened& screened);

/// Retest result of a suspect.
struct RetestResult {
  bool measured = false;  ///< the retest has samples of it
  bool slower = false;    ///< significantly slower than the controls
  double deficit = 0, low = 0,
         high = 0;  ///< difference of log rates, positive is slower, with its 95 % interval
  double sure = 0;  ///< lower bound of the deficit that a FAIL states, logarithmic
  double p = 1;     ///< chance of this deficit in a healthy part, adjusted for the candidates and sets
  std::int64_t samples = 0, controls = 0;
};
/// The retest of suspect `s`. `candidates`: how many suspects of this level and set were measured again;
/// `sets`: how many sets were. Throws nothing; without samples `measured` is false.
RetestResult judge_retest(const Screened& screened, const LinkRetest& retest, const SlowPlace& s,
                          std::size_t candidates, std::size_t sets = 1);

}  // namespace assay::verdict::network
