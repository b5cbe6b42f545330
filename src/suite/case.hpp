// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "results/metric_spec.hpp"

namespace assay {

/// In this order; cases are shuffled only inside a stage.
enum class Stage { inventory, node_local, pairs, groups, world, train, burn };
const char* to_string(Stage stage) noexcept;

/// What makes a case a retest: which parts are measured again (see verdict/retest/retest.hpp). Rows of the
/// EntityTable.
struct RetestOrder {
  std::string path;          ///< of the screening case
  int number = 1;            ///< K of its suffix .cK
  std::vector<int> devices;  ///< candidates and controls; empty: all, as in the screening
  std::vector<std::vector<std::pair<int, int>>> rounds;  ///< of links: disjoint pairs of devices per round
  std::map<int, std::string> servers;                    ///< names of those among them
  std::string
      variant;       ///< parameter `variant` of the retest case if it is measured in another way, else empty
  int samples = 30;  ///< per entity, in `visits` parts with the others between them
  double time_share = 1;  ///< of the time that it would take: less where that is not left
  static constexpr int visits = 3;
};

/// What --inject can do to a suite.
struct FaultPoints {
  std::vector<std::string> targets =
      {};                 ///< its injection points: results that may be corrupted before they are checked
  bool messages = false;  ///< messages of pairs: one can be dropped, a link slowed
  bool times = true;      ///< work that can be slowed or stalled
};

/// One operation x one parameter set x one size x one mode. Made by Suite::plan, equal on all ranks.
struct Case {
  std::string suite, name;  ///< name without the suite: [a-z0-9._-]{1,80}
  std::string operation;    ///< as in the suite's metrics
  bool addresses = false;   ///< the index of a wrong value is a byte offset in memory
  std::string title;        ///< title for users: "fp32 GEMM n=1024, all cores"; stored as a
                            ///< parameter, in no key
  std::string share;        ///< a metric and its reference, added to the title: "efficiency of FMA peak"
  Stage stage = Stage::node_local;
  bool required = false;  ///< for this level; other cases may be skipped for budget
  bool spare = false;  ///< a self-test: planned where no other case tests its checker, or asked for by name
  std::string not_applicable;  ///< reason; empty = planned
  bool multiplies = false;     ///< needs the device's matrix products (Device::no_products)
  std::string entity_kind = "device";
  std::int64_t entities = 0;  ///< how many rows the case will report
  std::size_t samples = 60;   ///< of each row, about: what the size of the results file is estimated from
  std::string links = {};     ///< cases of a suite with the same text, or none, have their links in common
  std::uint64_t bytes = 0;    ///< arena bytes per rank
  double seconds = 1;         ///< hard cap on measuring; the planner may scale it down to `min_seconds`
  double min_seconds = 0.1;
  double overhead_seconds = 0.02;  ///< set-up, verification and gathering beyond `seconds`
  /// Cap on `seconds` of a retest in which all measure again, which else takes `RetestOrder::visits` times as
  /// long.
  double retest_seconds = std::numeric_limits<double>::infinity();
  bool serial = false;  ///< `alone`: devices of a node take turns, so `seconds` is per turn and `turns` count
  int turns = 1;
  std::size_t rounds = 0;            ///< of pairs one after the other, which share `seconds`; 0: not told
  double deadline_s = 0;             ///< set by the planner
  bool in_every_pass = false;        ///< repeated as .p2, .p3 in new order where the level has passes
  Json parameters = Json::object();  ///< stored as attributes; numbers and strings only

  std::vector<std::string> checkers;  ///< set by the planner, from the suite
  FaultPoints faults;                 ///< likewise

  std::shared_ptr<const RetestOrder> retest;  ///< null but for retest cases

  std::string path() const { return suite + "/" + name; }
  /// `suite/name` without the suffix of a repeat (.pK) or a retest case (.cK).
  std::string base_path() const;
  /// Expected wall time.
  double expected_s() const noexcept { return (serial ? seconds * turns : seconds) + overhead_seconds; }
};

/// Why a case has too little memory, in bytes: what it needs (0: unknown) and what the plan may use per rank.
std::string too_little_memory(std::uint64_t needed, std::uint64_t budget);

/// Devices that work at the same time, as the end of a title: "all cores", "one rank at a time", "all GPUs",
/// "one GPU at a time".
std::string together_words(bool gpus, bool together);

}  // namespace assay
