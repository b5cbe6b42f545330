// SPDX-License-Identifier: Apache-2.0
// Shared by the rules of the verdict: the input, names of entities, the measured series, and the findings so
// far.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "results/case_name.hpp"
#include "results/described.hpp"
#include "results/model.hpp"
#include "verdict/verdict.hpp"

namespace assay::verdict {

/// Names and ancestry of the rows of /entities. Every member accepts an invalid row.
class EntityIndex {
 public:
  explicit EntityIndex(const std::vector<results::Entity>& entities);

  std::size_t size() const noexcept { return entities_.size(); }
  bool valid(std::int32_t row) const noexcept {
    return row >= 0 && static_cast<std::size_t>(row) < entities_.size();
  }
  std::string name(std::int32_t row) const;  ///< "cluster" when invalid
  std::string kind(std::int32_t row) const;  ///< "cluster" when invalid
  std::string id(std::int32_t row) const;
  std::int32_t node(std::int32_t row) const noexcept;  ///< the node above (or itself), -1 if none
  std::int32_t parent(std::int32_t row) const noexcept;
  const std::vector<std::int32_t>& nodes() const noexcept { return nodes_; }
  int cores(std::int32_t row) const noexcept;  ///< hardware threads of a host device (from its name), else 0
  /// Whether the run can measure it: false for a GPU without a rank, which only has inventory and counters.
  bool takes_part(std::int32_t row) const noexcept;
  bool shares_cores(std::int32_t row) const noexcept;  ///< a device named ".K": several ranks on one core set

 private:
  const std::vector<results::Entity>& entities_;
  std::vector<std::int32_t> node_of_, nodes_;
  std::vector<bool> shares_;
  std::vector<int> cores_;
  bool ranks_known_ = false;  ///< some device has a rank; in imported files none has
};

/// One entity's samples of one metric, reduced. For links `entity` is the link's row.
struct SeriesRow {
  std::int32_t entity = -1, source = -1, destination = -1;
  std::int32_t n = 0;
  double median = 0, standard_error = 0;  ///< the latter NaN for fewer than 3 samples
  /// For what is claimed of one part: standard_error, at least that by order statistics where samples have
  /// two states, of which the deviation sees one.
  double claim_error = 0;
  double lowest = 0, highest = 0;  ///< of the samples
  double half = 0;  ///< relative difference of the medians of odd and even samples; NaN for fewer than 4
  std::int32_t dips = 0;     ///< samples at less than `constants::dip` of the part's better quartile
  std::int32_t dips_of = 0;  ///< of so many; those of the retest count, too
  std::int32_t episodes = 0, longest = 0;  ///< runs of consecutive dips, and the dips of the longest one
  std::int32_t stratum = 0;
  std::uint8_t reference = 0;  ///< strongest reference it was held against, a Reference
  bool accepted = false;       ///< within a limit that names its part
};
enum Reference : std::uint8_t { none, peers, history, physical, baseline, limit };

/// Covariates that floors are computed from.
namespace covariate {
inline constexpr const char *link_rate = "link_rate", *bound_share = "bound_share";
}

/// All entities of one metric of one case; repeats (.pK) of the same case_key are joined.
struct Series {
  std::string suite, name, metric, unit, kind, stage, path;  ///< path in the file, for evidence
  results::Better better = results::Better::none;
  bool required = false;  ///< metric and case both
  bool judged = false;    ///< a metric with a direction, not a covariate
  bool per_sample = true;
  bool takes_turns = false;  ///< the devices of a node are measured one after the other
  results::Judging judging;
  const results::CaseData* first = nullptr;
  std::vector<SeriesRow> rows;
  std::vector<std::string> strata;
  double dead_value = results::not_taken;  ///< of links: what stands for impossible values; NaN without any

  std::string full() const { return suite + "/" + name + ":" + metric; }
  /// One value for several ranks, which are then no population.
  bool is_shared() const noexcept { return judging.shared_by != results::SharedBy::none; }
  /// Measured by another tool.
  bool is_imported() const { return first != nullptr && first->parameters.contains("imported"); }
  bool is_of(results::MetricClass c) const noexcept { return judging.of == c; }
};

/// An entity beyond a bound, before it becomes a finding of the entity or of its population.
struct Below {
  const SeriesRow* row = nullptr;
  std::int32_t entity = -1;  ///< the named entity
  std::vector<std::int32_t> rows;
  double value = 0, reference = 0, standard_error = 0;
  std::int64_t n = 0;
  bool higher_is_better = true;
  bool exact = false;     ///< a count rather than a rate: needs no interval
  bool retested = false;  ///< value, standard_error and n are those of a retest case; screening had `first`
  double first = 0;
  bool lasting = false;  ///< not sure in the retest, but in 3 blocks and 60 s of the screening
  bool dead = false;     ///< `value` stands for impossible ones
};

/// A finding and the rows of /entities whose state it decides.
struct Found {
  results::Finding finding;
  bool inconclusive = false;
  std::vector<std::int32_t> rows;
};

/// NIC or rank `number` of every node: all their pairs are slow beside those of another number.
struct SlowRail {
  int number = 0;
  std::string metric;                     ///< Series::full
  std::set<std::int32_t> ends, switches;  ///< `switches`: where it has them for itself
  std::set<std::int32_t> sound_nodes;     ///< whose other rails are as they should be
  std::size_t links = 0;
  double value = 0, deficit = 0;
  bool most = false;                   ///< one of more than half of the rails: who is right is open
  std::map<std::string, double> loss;  ///< of the logarithm of the rate, by Series::full
  bool contains(std::int32_t a, std::int32_t b) const { return ends.contains(a) && ends.contains(b); }
};

struct Judgement {
  Judgement(const results::Results& r, const Options& o) : results(r), options(o), entities(r.entities) {}

  const results::Results& results;
  const Options& options;
  EntityIndex entities;
  std::vector<Series> series;
  std::vector<SlowRail> slow_rails;
  std::vector<Found> found;
  struct Gap {
    std::string reason;
    std::vector<std::int32_t> rows;  ///< entities without this evidence; empty: all nodes
  };
  std::vector<Gap> gaps;
  results::Accounting accounting;
  /// Expected number of confirmed faults that a healthy fleet, however large, would show by chance; every
  /// rule that can fail an entity by statistics adds the budget it spends.
  double expected_false_fails = 0;

  bool at_least_standard() const;
  /// A finding about an entity, with name, id and level filled in.
  results::Finding about(std::int32_t row, const std::string& severity, const std::string& claim,
                         const std::string& kind) const;
  /// The same about values of a series, with metric, unit, better and evidence.
  results::Finding about(const Series& s, std::int32_t row, const std::string& severity,
                         const std::string& claim, const std::string& kind) const;
  void add(results::Finding finding, std::vector<std::int32_t> rows, bool inconclusive = false);
  void gap(std::string reason, std::vector<std::int32_t> rows = {}) {
    gaps.push_back({std::move(reason), std::move(rows)});
  }
};

/// A value of the echoed configuration, at the top or among its "options"; null when absent.
const Json* configured(const Json& config, const char* key);

using results::base_name;
using results::retest_number;
/// glob_match: on whole names; `*` also matches `/`.
bool glob(const std::string& pattern, const std::string& text);
bool ends_with(const std::string& text, const std::string& tail);
/// A number or text column of an inventory table by its first known name; nullptr if absent.
const std::vector<double>* number_column(const results::InventoryTable& table,
                                         std::initializer_list<const char*> names);
const std::vector<std::string>* text_column(const results::InventoryTable& table,
                                            std::initializer_list<const char*> names);
/// The series of a finding by its metric; nullptr without one.
const Series* series_of(const Judgement& j, const results::Finding& finding);
/// Names of network interfaces that ride on fabric ports which /inventory/nic lists by themselves.
std::set<std::string> riding_interfaces(const Judgement& j);
/// deficit = 1 - value/reference where higher is better, 1 - reference/value where lower is.
double deficit_of(double value, double reference, bool higher_is_better) noexcept;
/// As statistics take a value: infinite or nothing where it is beyond what can be.
double bounded(double value) noexcept;
/// A part did something at some rate or in some time. Counts and ratios may be nothing.
bool is_rate_or_time(const std::string& unit);
/// What stands for impossible values of links beside their usual rate (or time), so that the rules that find
/// the end of slow links find that of dead ones.
double dead_link_value(double usual, results::Better better) noexcept;
/// Whether a part is FAIL `dead` by a retest of this suite: what the screening says of it says no more.
bool died_in_retest(const Judgement& j, const std::string& suite, std::int32_t entity);
std::string percent(double fraction);
/// The first eight of some names, and how many more there are.
std::string first_of(const std::vector<std::string>& names);

/// Whether a deficit against a limit or floor is certain: the whole 95 % interval of the median is beyond the
/// bound (with under three samples: over 20 %), and at level smoke over 20 % in any case. After a retest, its
/// median counts.
bool confirmed_below(const Judgement& j, const Below& b);
/// A claim of magnitude, FAIL when confirmed and WARN otherwise; `what` names the bound ("limit 10 GB/s").
results::Finding magnitude(const Judgement& j, const Series& s, const Below& b,
                           const std::string& reference_kind, const std::string& what);
/// Measured again and not surely below any more: a note.
bool cleared(const Below& b);
/// What is beyond a bound: one finding with members where it is `least` and more than half of a population,
/// else one each. `what` as above.
void add_below(Judgement& j, const Series& s, std::vector<Below> below, std::size_t population,
               std::size_t least, const std::string& reference_kind,
               const std::function<std::string(const Below&)>& what);
/// Rows whose state a series row decides: the entity, or both ends of a link.
std::vector<std::int32_t> rows_of(const SeriesRow& row);
std::string name_of(const Judgement& j, const SeriesRow& row);

// The rules, in the order they run. Each reads the results and adds gaps or findings.
/// Covariates of which a link has one number (its round, its repetitions) are left out if no floor, limit or
/// --require reads them and `every_number` is not set: of many links they would be most of the rows.
void collect_series(Judgement& j, bool every_number = false);
/// SeriesRow::claim_error of samples, each with the number of its block.
double claim_error_of(std::vector<double> values, std::vector<std::int32_t> blocks);
void judge_accounting(Judgement& j);
void judge_impossible(Judgement& j);
/// The same of links, after the rules that name their ends.
void judge_impossible_links(Judgement& j);
void judge_selftest(Judgement& j);
void judge_miscompares(Judgement& j);
void judge_digests(Judgement& j);
void judge_events(Judgement& j);
void judge_counters(Judgement& j);
void judge_paths(Judgement& j);
void judge_required(Judgement& j);
/// Whether --require names `coverage`: cores and GPUs that no rank measures make the run INCONCLUSIVE.
bool requires_coverage(const Judgement& j);
void judge_inventory(Judgement& j);
void judge_links(Judgement& j);
void judge_limits(Judgement& j);
void judge_physical(Judgement& j);
void judge_small_populations(Judgement& j);
void judge_peers(Judgement& j);
void judge_patterns(Judgement& j);
void judge_dips(Judgement& j);
void judge_drift(Judgement& j);
void judge_noise(Judgement& j);
/// Counts of imported files, and what of them was compared with nothing (runs last).
void judge_imported(Judgement& j);
/// Whether a rank of this part had less than `core_share_least` of its core in the retest, else in the
/// screening, and no quota is why: the scheduler decides its rate.
bool lacks_core(const Judgement& j, const Series& s, std::int32_t part);
/// Makes a finding a note, and returns true, where most of `parts` do: their rates then tell of who shared
/// their cores, and not of them.
bool note_shared_cores(const Judgement& j, const Series& s, const std::vector<std::int32_t>& parts,
                       results::Finding& f);
/// Names shared cores and CPU quotas in the findings that they explain.
void attribute_core_share(Judgement& j);
/// Adds the directory, and of one node its disks, to what findings of storage say.
void name_storage_places(Judgement& j);
/// Judged values (a part in a metric) by the strongest reference that each was compared with, after all
/// rules.
struct Compared {
  std::size_t limits = 0, baseline = 0, hardware = 0, history = 0, peers = 0, nothing = 0;
  std::size_t left_out = 0;  ///< that are no rate
  std::size_t with_something() const noexcept { return limits + baseline + hardware + history + peers; }
};
Compared compared_of(const Judgement& j);
/// Names of the two counts of VerdictData::compared that are no comparison.
inline constexpr const char *compared_with_nothing = "nothing", *left_out_of_comparisons = "left out";
/// "limits 12, hardware rates 30, peers only 4" of VerdictData::compared.
std::string basis_of(const std::vector<std::pair<std::string, std::size_t>>& counts);
/// All rules in their order, then `conclude`. Afterwards the series hold their references.
results::VerdictData judge_all(Judgement& j);
/// Orders the findings, gives every entity its state, and the run its state, basis and exit code.
results::VerdictData conclude(Judgement& j);

}  // namespace assay::verdict
