// SPDX-License-Identifier: Apache-2.0
// The content of a results file as plain values. The writer stores it, the reader gives it back, the verdict
// judges it, the report prints it; none of them uses a device or MPI. results-schema/schema.json defines the
// stored form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/interned.hpp"
#include "base/json.hpp"
#include "results/metric_spec.hpp"
#include "results/values.hpp"

namespace assay::results {

inline constexpr double not_taken = std::numeric_limits<double>::quiet_NaN();

/// Ordered so that the state of a case over its ranks is the largest: error > fail > incomplete > skip >
/// pass.
enum class CaseState { pass, skip, incomplete, fail, error };

const char* to_string(CaseState s) noexcept;
CaseState case_state_from(const std::string& text);  ///< throws Error(data)

/// A part of the machine. Rows are referred to by their index in /entities.
struct Entity {
  std::string kind;       ///< cluster|switch|rack|node|cpu|numa|dimm|device|nic|port|rank|link|server
  std::string id;         ///< stable identity (DMI UUID, serial, GUID, MAC, or a path below the node's id)
  std::string id_source;  ///< dmi|hostname|serial|uuid|guid|mac|path
  std::string name;       ///< for people: node07, node07/cores0-3, node07/numa1, node07/mlx5_0:1, a>b
  std::int32_t parent = -1;
  std::int32_t rank = -1;
};

inline constexpr const char* no_checks = "-";
inline constexpr const char* unknown_checks = "?";

struct PlanRow {
  std::string suite, name;        ///< `name` is the case name without the suite
  std::string state = "planned";  ///< planned|not_applicable
  std::string reason;
  bool required = false;
  std::int64_t entities = 0;
  std::uint64_t bytes = 0;  ///< of memory, per rank
  double seconds = 0;       ///< expected
  double deadline_s = 0;
  /// Checkers that must have passed their self-test, separated by commas; empty: none is declared; no_checks:
  /// nothing is computed that could be wrong; unknown_checks in files before schema 1.3, see checkers_of.
  std::string checkers = unknown_checks;
  std::string targets = {};  ///< results that --inject can corrupt, separated by commas
};

/// One metric of a case: values are [entity] (per_sample false) or row-major [entity, sample], NaN = not
/// taken.
struct Metric {
  std::string name, unit;
  Better better = Better::none;
  bool required = true;
  Role role = Role::metric;
  bool per_sample = true;
  Values<double> values;
  std::optional<Judging> judging =
      {};                  ///< as its suite declares it; absent in files before schema 1.3, see judging_of
  std::string title = {};  ///< for people, in a few plain words; may be empty
};

/// Integer data with dimensions of its own (digests). The first dimension is "entity" unless named otherwise.
struct IntegerArray {
  std::string name;
  std::vector<std::string> dims;
  std::vector<std::size_t> shape;
  Values<std::uint64_t> values;
};

/// Wall time of a case by purpose, seconds, the mean over its ranks.
struct TimeShares {
  double wall_s = 0, warmup_s = 0, timed_s = 0, verify_s = 0;
};

/// Whether a case measures again what was suspected: its name ends in .cK. It is not part of the plan.
bool is_retest(const std::string& case_name) noexcept;

struct CaseData {
  std::string suite, name;  ///< name may carry .pK (repeat) or .cK (retest)
  CaseState state = CaseState::pass;
  std::string reason;
  bool required = false;
  std::string stage;  ///< inventory|node-local|pairs|groups|world|train
  std::string case_key;
  std::string started, ended;  ///< ISO 8601 UTC
  TimeShares shares;
  Json parameters = Json::object();
  std::string kind;                                       ///< of the entities: device|numa|node|link|rank|nic
  std::vector<std::int32_t> entity, source, destination;  ///< the last two for links only
  std::vector<std::int32_t> count;                        ///< samples taken per entity
  std::vector<std::int32_t> sample, block;                ///< coordinates, both [sample]
  Values<double> t;                                       ///< [entity, sample] seconds since run start
  std::vector<Metric> metrics;
  std::vector<IntegerArray> arrays;
  std::optional<CaseTraits> traits =
      {};  ///< as its suite declares them; absent in files before schema 1.3, see traits_of

  std::size_t entities() const noexcept { return entity.size(); }
  std::size_t samples() const noexcept { return sample.size(); }
  const Metric* find(const std::string& metric) const noexcept;
  std::string path() const { return suite + "/" + name; }
};

/// Parameter of a case inside nodes that some ranks did not finish, and what it says of them; the values of
/// the case are those of the others.
inline constexpr const char* unfinished_parameter = "unfinished";
/// Beside it: names of the devices of these ranks.
inline constexpr const char* unfinished_parts_parameter = "unfinished_on";
/// Empty where all ranks finished.
std::string unfinished_text(const CaseData& c);
std::vector<std::string> unfinished_parts(const CaseData& c);

struct Miscompare {
  std::string case_path;  ///< suite/name
  std::int32_t entity = -1;
  std::uint64_t index = 0;  ///< byte offset in memory where CaseTraits::addresses, else of the element
  std::uint64_t expected = 0, actual = 0, reread = 0;  ///< raw bits; xor is derived
  double t = 0;
  std::int32_t sm = -1, warp = -1,
               lane = -1;  ///< of a GPU: multiprocessor, warp slot and lane that saw it; -1 unknown
};

/// before/after NaN: `unsupported` if both, `unreadable` if only `after`.
struct CounterRow {
  Interned case_path;
  std::int32_t entity = -1;
  Interned counter;
  double before = not_taken, after = not_taken;
};

struct EventRow {
  double t = 0;
  std::int32_t entity = -1;
  std::string kind, text;
  std::string finding =
      {};  ///< of a launch event: missing, uncovered, ...; always there after reading a file
  std::string case_path = {};  ///< of an event that bears on one case, such as storage/shared-easy-write-0
};

/// What was sampled of nodes and GPUs while cases ran: clocks, power, temperatures. In the order of the
/// cases; times of a resumed run can begin anew.
struct TelemetryTable {
  std::vector<std::int32_t> entity;
  std::vector<double> t;                              ///< seconds since run start
  std::map<std::string, std::vector<double>> number;  ///< by quantity, as long as t; NaN = not told
  std::map<std::string, std::string> unit;

  /// A quantity that one of them lacks is NaN there.
  void append(TelemetryTable&& more);
};

/// A state that changed: value 1 = set, 0 = cleared.
struct FlagRow {
  double t = 0;
  std::int32_t entity = -1;
  std::string flag;
  std::int32_t value = 0;
};

/// One detection self-test: did the checker see the value that was corrupted on purpose?
struct SelftestRow {
  std::string checker;  ///< as a suite declares it
  std::int64_t injected = 0, caught = 0, located = 0, counted = 0;
  std::int32_t entity = -1;
};

struct EnvironmentRow {
  std::string node, key, value;
};

/// A table of /inventory/<kind>: text or number columns of equal length beside `entity`.
struct InventoryTable {
  std::vector<std::int32_t> entity;
  std::map<std::string, std::vector<std::string>> text;
  std::map<std::string, std::vector<double>> number;  ///< NaN = unsupported
  std::map<std::string, std::string> unit;            ///< of number columns
};

struct Finding {
  std::string severity;  ///< INFO|WARN|FAIL
  std::string claim;     ///< magnitude|abnormality|fact
  std::string level;     ///< cluster|switch|rack|node|cpu|numa|dimm|device|nic|link|rank|storage
  std::string name, id, part;
  std::vector<std::string> members;
  /// slow|slow_at_clock|throttled|intermittent|drift|corrupt|counter|missing|mismatch|split|hang|lost|
  /// noisy|uncovered
  std::string kind;
  std::string suite, metric, unit, better;
  std::optional<double> value, reference;
  std::string reference_kind;  ///< limit|baseline|physical|peers|history, empty for facts
  std::optional<double> deficit, ci_low, ci_high;
  std::optional<std::int64_t> samples, controls;
  std::string stratum;
  bool confirmed = false;
  /// fact|retest|others|blocks|runs|counter|interval|exact|size; empty if not confirmed, or in an older file
  std::string confirmed_by;
  std::optional<double> p_adjusted;
  std::optional<double> uncertainty;  ///< of a noisy metric: 4 standard errors of its median, relative
  std::string since, action, evidence, text;  ///< `text`: one line for people

  void confirm(const std::string& by) {
    confirmed = !by.empty();
    confirmed_by = by;
  }
};

struct EntityState {
  std::int32_t entity = -1;
  std::string state;  ///< PASS|WARN|FAIL|INCONCLUSIVE|NOT_TESTED
  std::string reason;
};

/// planned = passed + failed + skipped + error + incomplete.
struct Accounting {
  std::int64_t planned = 0, passed = 0, failed = 0, skipped = 0, error = 0, incomplete = 0;
  std::int64_t not_applicable = 0, required_missing = 0;
};

struct VerdictData {
  std::string state;  ///< PASS|WARN|FAIL|INCONCLUSIVE
  int exit_code = 3;
  std::string basis;  ///< "limits 12, hardware rates 30, peers only 4"
  std::vector<std::pair<std::string, std::size_t>> compared = {};  ///< counts of `basis`; not stored
  double false_alarm_rate = not_taken;
  std::vector<std::string> reasons;  ///< why the state is what it is, one line each
  std::vector<Finding> findings;
  std::vector<EntityState> entities;
  Accounting accounting;
  Json inputs = Json::object();
};

struct RunInfo {
  std::string run_id, state = "running", started, ended, command_line, assay_version, level, plan_hash,
                      verdict;
  std::uint64_t seed = 0;
  bool injected = false;
};

struct Results {
  RunInfo info;
  Json config = Json::object();
  std::vector<PlanRow> plan;
  std::vector<EnvironmentRow> environment;
  std::vector<Entity> entities;
  std::map<std::string, InventoryTable> inventory;
  std::vector<CaseData> cases;
  std::vector<Miscompare> errors;
  std::vector<CounterRow> counters;
  TelemetryTable telemetry;
  std::vector<FlagRow> flags;
  std::vector<EventRow> events;
  std::vector<SelftestRow> selftest;
  std::optional<VerdictData> verdict;  ///< as stored in the file, if it was
};

}  // namespace assay::results
