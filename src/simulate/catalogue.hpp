// SPDX-License-Identifier: Apache-2.0
// The metrics a synthetic cluster can have: the cases of the real suites, with their names, units and typical
// rates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "results/model.hpp"

namespace assay::simulate {

/// Whom a metric is about.
enum class Subject { device, link, collective };

struct MetricModel {
  std::string suite, name;  ///< of the case
  std::string metric, unit;
  results::Better better = results::Better::higher;
  Subject subject = Subject::device;
  std::string stage;
  double typical = 1;      ///< value of a healthy entity
  double clock_slope = 0;  ///< power of the clock that the rate follows
  Json parameters = Json::object();
  std::optional<results::Judging> judging =
      {};  ///< as the suite declares it; without, by the table for files of earlier versions
  std::string title = {};
  std::vector<std::string> checkers = {};  ///< of the suite
  std::string operation = {};  ///< of the suite: its MetricSpec is that of this operation and metric
  std::int64_t rounds = 0;     ///< of pairs of nodes; 0: Spec::rounds
  /// Rounds of pairs of nodes after these.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> more_rounds = {};

  std::string path() const { return suite + "/" + name + ":" + metric; }
};

/// All of them: device metrics first, then links, then collectives.
const std::vector<MetricModel>& catalogue();

/// What suites of this build declare with a typical value, beside the default list: by suite, its metrics and
/// checkers.
struct Declared {
  std::string suite;
  std::vector<results::MetricSpec> metrics;
  std::vector<std::string> checkers;
};
std::vector<MetricModel> models_of(const std::vector<Declared>& suites);
/// What a file says that stores no judging: floor and sharing follow from the case.
results::Judging judging_without_suite(const MetricModel& model);
/// Gives models of the default list what their suites declare: unit, direction, judging, title, checkers.
/// Throws Error(internal) for a metric that its suite does not declare. Suites that are not built are left
/// out.
void describe(std::vector<MetricModel>& models, const std::vector<Declared>& suites);

/// The suites that have any, in the order of the lists.
std::vector<std::string> suites_of(const std::vector<MetricModel>& further);

/// The metrics that the items of a list name: a suite, a glob on suite/case:metric ("memory/triad*"), or a
/// number N, the first N device metrics of the default list. Throws Error(usage) naming an item that names
/// nothing.
std::vector<MetricModel> pick_metrics(const std::vector<std::string>& items,
                                      const std::vector<MetricModel>& further = {});

/// A checker that a simulated run of a suite has, its self-test, and the case that counts what it found wrong
/// (none without a name).
struct Check {
  const char *suite, *checker, *name;
  const char* target;  ///< of bitflip:target=
  const char* stage;
};
const std::vector<Check>& checks();
/// The targets of all checks.
std::vector<std::string> targets();
/// Parts that a node can lack: a device, a NIC, a sixteenth of its memory.
const std::vector<std::string>& parts_of_a_node();
inline constexpr std::size_t memory_part = 2;  ///< position of the last one

}  // namespace assay::simulate
