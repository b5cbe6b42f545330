// SPDX-License-Identifier: Apache-2.0
// The metrics of a suite together: their sum, what correlated ones have in common, and several outliers at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "verdict/abnormality.hpp"
#include "verdict/judgement.hpp"
#include "verdict/nested.hpp"
#include "verdict/population.hpp"

namespace assay::verdict {

/// One test: the members of one side of a split (or all), by residual or by the rate as measured.
struct Test {
  std::size_t population = 0;
  bool at_clock = true;
  std::vector<std::size_t> members;
  Abnormality result;
  double weight = 1;
  double nested = 0;  ///< share of what all devices of a node have in common, where it counts (nested.hpp)
  std::vector<double> own;  ///< of the members: what is left of the log rate without what their metrics have
                            ///< in common, a healthy one about 0; empty: the rate itself is tested
};

/// Standardised scores of an entity summed over the metrics of a suite. Their null is estimated from the sums
/// themselves, so that metrics that tell the same story cost nothing and those that do not help.
struct Combined {
  std::vector<std::int32_t> entities;
  std::vector<std::int32_t> node;  ///< of each entity
  std::vector<double> sums;
  std::vector<std::int32_t> counts;
  std::unordered_map<std::int32_t, std::size_t> at;
  std::vector<const Test*> tests;
  std::vector<std::vector<const Test*>> voices;  ///< tests that tell the same story stand together
  std::vector<const Test*> alike;  ///< the tests of a voice that nearly all belong to; empty without such
  std::vector<double> story;       ///< of each entity: its median score in these
  std::vector<double> common;      ///< likewise, of the log rates against their medians

  /// The entities of each node, as places in `entities`: of the nodes with as many as most have, which are
  /// two or more. Empty for fewer than six such nodes.
  std::vector<std::vector<std::size_t>> nodes() const;
};

using Suites = std::map<std::string, Combined>;

std::string suite_of(const Population& p);
/// Of populations that are judged by how their parts differ: each side of a split, and where the clock
/// explains some of it also the rates as measured.
std::vector<Test> tests_of(const EntityIndex& of, const std::vector<Population>& populations);
Nested nested_of(const EntityIndex& of, const Population& p, const Test& t);
/// By suite, kind of part and stratum; of two tests and six entities at least. Of the tests at equal clock,
/// or of those of the rates as measured. `tests` must outlive it.
Suites combine(const EntityIndex& of, const std::vector<Population>& populations,
               const std::vector<Test>& tests, bool at_clock);
/// Few parts do not show by one metric that most are near a ceiling and the others in a tail below it. What
/// the uncorrelated metrics of a suite say of that together holds for each. `suites` are of `tests`, and to
/// be combined anew.
void share_skew(const std::vector<Population>& populations, const Suites& suites, std::vector<Test>& tests);
/// The values that a test is about.
std::vector<double> values_of(const Population& p, const Test& t);
/// Tests of what each metric of a story has of its own: parts differ less in it, and what one metric shows
/// says nothing of the others.
std::vector<Test> own_tests(const std::vector<Population>& populations, const Combined& c);
/// A dozen parts know their own spread badly; a dozen metrics of them that spread alike know it well. `tests`
/// are those that `suites` combines, `own` those of own_tests.
void lend_spreads(const std::vector<Population>& populations, const Suites& suites, std::vector<Test>& tests,
                  std::vector<Test>& own);
/// P that a healthy entity of a suite lies as far out in its voices as each one does, by Fisher's
/// combination. Several metrics of one voice count by the least extreme of them.
std::vector<double> joint_p(const std::vector<Population>& populations, const Combined& c);

}  // namespace assay::verdict
