// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"

namespace assay {

/// In this order; cases are shuffled only inside a stage.
enum class Stage { inventory, node_local, pairs, groups, world, train, burn };
const char* to_string(Stage stage) noexcept;

/// What makes a case a confirming one: who is measured again (see verdict/confirm.hpp). Rows of the EntityTable.
struct Confirm {
  std::string path;         ///< of the screening case
  int number = 1;           ///< K of its suffix .cK
  std::vector<int> devices; ///< candidates and controls; empty: everybody, as at the first time
  std::vector<std::vector<std::pair<int, int>>> rounds;  ///< of links: disjoint pairs of devices per round
  std::string variant;      ///< parameter `variant` of the confirming case where it is measured in another way, else empty
  int samples = 30;         ///< per entity, in `visits` parts with the others between them
  static constexpr int visits = 3;
};

/// One operation x one parameter set x one size x one mode. Made by Suite::plan, equal on all ranks.
struct Case {
  std::string suite, name;        ///< name without the suite: [a-z0-9._-]{1,80}
  Stage stage = Stage::node_local;
  bool required = false;          ///< for this level; the rest is opportunistic and may be skipped for budget
  std::string not_applicable;     ///< reason; empty = planned
  std::string entity_kind = "device";
  std::int64_t entities = 0;      ///< how many rows the case will report
  std::uint64_t bytes = 0;        ///< arena bytes per rank
  double seconds = 1;             ///< hard cap on measuring; the planner may scale it down to `min_seconds`
  double min_seconds = 0.1;
  double overhead_seconds = 0.02; ///< set-up, verification and gathering beyond `seconds`
  bool serial = false;            ///< `alone`: devices of a node take turns, so `seconds` is per turn and `turns` count
  int turns = 1;
  double deadline_s = 0;          ///< set by the planner
  bool in_every_pass = false;     ///< repeated as .p2, .p3 in new order where the level has passes
  Json parameters = Json::object();  ///< stored as attributes; numbers and strings only

  std::shared_ptr<const Confirm> confirm;  ///< null but for confirming cases

  std::string path() const { return suite + "/" + name; }
  /// `suite/name` without the suffix of a repeat (.pK) or a confirming case (.cK).
  std::string base_path() const;
  /// Expected wall time.
  double expected_s() const noexcept { return (serial ? seconds * turns : seconds) + overhead_seconds; }
};

}  // namespace assay
