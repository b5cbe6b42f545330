// SPDX-License-Identifier: Apache-2.0
#include "run/planner.hpp"

#include <sys/resource.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/units.hpp"
#include "results/packed.hpp"
#include "run/disk_space.hpp"

namespace assay {
namespace {

constexpr double mib = 1024.0 * 1024.0;
/// Share of the budget that required cases may plan to use; the rest absorbs estimates that were too low.
constexpr double required_share = 0.85;

double usable_memory(const Node& node, double fraction) {
  double available = static_cast<double>(node.memory_available_bytes);
  if (!std::isnan(node.cgroup_limit_bytes)) {
    const double used = std::isnan(node.cgroup_used_bytes) ? 0.0 : node.cgroup_used_bytes;
    available = std::min(available, node.cgroup_limit_bytes - used);
  }
  const double reserve = std::max(4096.0 * mib, 0.05 * static_cast<double>(node.memory_bytes));
  // A node smaller than the reserve can still be tested with a quarter of what it has.
  return std::min(available * fraction, std::max(available - reserve, available * 0.25));
}

/// GPUs: of each a share of what was free, less what libraries take for themselves when they start.
double gpu_memory_per_rank(const Topology& topology, double fraction) {
  constexpr double libraries = 512 * mib;
  std::map<std::pair<int, int>, int> sharers;
  for (const RankPlace& place : topology.ranks) ++sharers[{place.node, place.gpu}];
  double least = std::numeric_limits<double>::infinity();
  for (const RankPlace& place : topology.ranks) {
    const double usable = std::max(place.gpu_free_bytes - libraries, 0.25 * place.gpu_free_bytes);
    least = std::min(least, usable * fraction / sharers[{place.node, place.gpu}]);
  }
  return least;
}

bool selected(const Case& c, const Config& config) {
  return glob_match(config.cases_glob, c.path()) || glob_match(config.cases_glob, c.name);
}

/// Scales the measuring time of all cases by one factor until the required ones fit their share of the
/// budget; of optional ones that are shorter, more fit the rest.
void fit_required(std::vector<Case>& cases, double budget_s) {
  for (int round = 0; round < 8; ++round) {
    double fixed = 0, scalable = 0;
    for (const Case& c : cases) {
      if (!c.required || !c.not_applicable.empty()) continue;
      const double turns = c.serial ? c.turns : 1;
      (c.seconds > c.min_seconds ? scalable : fixed) += c.seconds * turns;
      fixed += c.overhead_seconds;
    }
    const double room = budget_s * required_share - fixed;
    if (scalable <= room || scalable == 0) return;
    const double factor = std::max(0.0, room / scalable);
    for (Case& c : cases)
      if (c.seconds > c.min_seconds) c.seconds = std::max(c.min_seconds, c.seconds * factor);
  }
}

void add_passes(std::vector<Case>& cases, int passes) {
  const std::size_t n = cases.size();
  for (int pass = 2; pass <= passes; ++pass)
    for (std::size_t i = 0; i < n; ++i) {
      if (!cases[i].in_every_pass || !cases[i].not_applicable.empty()) continue;
      Case copy = cases[i];
      copy.name += ".p" + std::to_string(pass);
      copy.required = false;
      cases.push_back(std::move(copy));
    }
}

int pass_of(const Case& c) {
  const auto dot = c.name.rfind(".p");
  return dot == std::string::npos ? 1 : std::atoi(c.name.c_str() + dot + 2);
}

/// Stages in order; inside a stage pass by pass, each in an order of its own.
void order(std::vector<Case>& cases, std::uint64_t seed) {
  const RandomStream stream(seed, "order");
  const auto shuffled = stream.permutation(cases.size());
  std::vector<std::pair<std::tuple<bool, int, int, std::size_t>, std::size_t>> keys;
  for (std::size_t i = 0; i < cases.size(); ++i)
    keys.push_back(
        {{!cases[i].not_applicable.empty(), static_cast<int>(cases[i].stage), pass_of(cases[i]), shuffled[i]},
         i});
  std::sort(keys.begin(), keys.end());
  std::vector<Case> ordered;
  for (const auto& [key, i] : keys) ordered.push_back(std::move(cases[i]));
  cases = std::move(ordered);
}

std::string hash_of(const Plan& plan, const Config& config, const Topology& topology) {
  std::uint64_t hash = hash_text(fmt::format("{};{};{};{};", ASSAY_VERSION, config.to_json(true).dump(),
                                             config.seed, plan.memory_per_rank_bytes));
  const auto add = [&hash](const std::string& text) { hash = hash_text(text, hash); };
  for (const RankPlace& place : topology.ranks) {
    const Node& node = topology.nodes[static_cast<std::size_t>(place.node)];
    add(fmt::format("{}:{}:{}:{}:{};", place.rank, place.node, node.cores, node.cpu_model,
                    fmt::join(place.cpus, ",")));
    if (place.gpu >= 0) add(fmt::format("gpu {};", node.gpu_uuid(static_cast<std::size_t>(place.gpu))));
  }
  for (const Case& c : plan.cases)
    add(fmt::format("{}:{}:{}:{:.6g}:{}:{};", c.path(), c.bytes, c.required, c.seconds,
                    c.not_applicable.empty(), c.parameters.dump()));
  return fmt::format("{:016x}", hash);
}

void check_names(const std::vector<Case>& cases) {
  std::set<std::string> seen;
  for (const Case& c : cases) {
    const bool legal =
        !c.name.empty() && c.name.size() <= 80 &&
        c.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == std::string::npos;
    if (!legal) throw Error(ErrorKind::internal, "case name not allowed: " + c.path());
    if (!seen.insert(c.path()).second) throw Error(ErrorKind::internal, "two cases of one name: " + c.path());
  }
}

}  // namespace

double Plan::required_s() const noexcept {
  double sum = 0;
  for (const Case& c : cases)
    if (c.required && c.not_applicable.empty()) sum += c.expected_s();
  return sum;
}

std::string Plan::over_budget() const {
  if (required_s() <= budget_s) return "";
  return fmt::format("required cases need {}, the budget is {}", format_seconds(required_s()),
                     format_seconds(budget_s));
}

std::int64_t Plan::without_products(const Topology& topology) const noexcept {
  if (topology.no_products.empty()) return 0;
  return std::count_if(cases.begin(), cases.end(), [](const Case& c) { return c.multiplies; });
}

double Plan::expected_s() const noexcept {
  double sum = 0;
  for (const Case& c : cases)
    if (c.not_applicable.empty()) sum += c.expected_s();
  return sum;
}

namespace {

/// Of an array of `values` numbers that take `packed_bytes` each where they are packed.
double stored_bytes(double values, double packed_bytes, bool packed) {
  constexpr double value_bytes = 8;
  return values * (!packed || value_bytes * values < results::packed_from_bytes ? value_bytes : packed_bytes);
}

double case_bytes(const Case& c, const Columns& of, bool packed) {
  // Measured: group, attributes, scales and times of a case take 4 kB whatever it holds, each metric with its
  // attributes 1.5 kB. Packed, a time takes 3.5 bytes, a rate with its noise 5.3, and the numbers of a row,
  // which are much alike, 2 each.
  constexpr double head_bytes = 4e3, metric_bytes = 1.5e3, ends = 2, time_bytes = 3.5, rate_bytes = 5.3,
                   alike_bytes = 2;
  const auto rows = static_cast<double>(c.entities), values = rows * static_cast<double>(c.samples);
  return head_bytes + metric_bytes * (of.per_sample + of.per_row) +
         (ends + of.per_row) * stored_bytes(rows, alike_bytes, packed) +
         stored_bytes(values, time_bytes, packed) + of.per_sample * stored_bytes(values, rate_bytes, packed);
}

}  // namespace

double Plan::case_file_bytes(const Case& c) const { return case_bytes(c, columns_of(c), false); }

Columns Plan::columns_of(const Case& c) const {
  const auto known = columns.find(c.suite + " " + c.operation);
  return known == columns.end() ? Columns() : known->second;
}

std::uint64_t Plan::bytes_of(bool packed) const {
  // Measured: a link in /entities, with the names of both its ends.
  const auto link_bytes = [](double count) { return count < results::packed_from_texts ? 300.0 : 30.0; };
  // Times and rows take as much as values; of counters the texts are packed.
  const double telemetry_unpacked = packed ? 1 : 1.3, counters_unpacked = packed ? 1 : 2.5;
  double required = 0, others = 0;
  struct Links {
    double most = 0;
    int required = 0, others = 0;  ///< cases that have them
  };
  std::map<std::string, Links> links;
  for (const Case& c : cases) {
    if (!c.not_applicable.empty()) continue;
    double& sum = c.required ? required : others;
    sum += case_bytes(c, columns_of(c), packed) + counters_unpacked * counter_bytes;
    if (c.entity_kind != "link") continue;
    Links& own = links[c.suite + " " + (c.links.empty() ? std::to_string(c.entities) : c.links)];
    own.most = std::max(own.most, static_cast<double>(c.entities));
    ++(c.required ? own.required : own.others);
  }
  const double wanted_s = expected_s() - required_s();
  const double share = wanted_s > 0 ? std::clamp((budget_s - required_s()) / wanted_s, 0.0, 1.0) : 0.0;
  double names = 0;
  for (const auto& [name, of] : links)
    names += of.most * link_bytes(of.most) *
             (of.required > 0 ? 1 : 1 - std::pow(1 - share, of.others));  // at least one case is run
  return 64 * 1024 + static_cast<std::uint64_t>(telemetry_unpacked * static_cast<double>(telemetry_bytes)) +
         entity_bytes + static_cast<std::uint64_t>(required + share * others + names);
}

std::uint64_t most_file_bytes(const Config& config, std::size_t nodes) noexcept {
  constexpr std::uint64_t least = std::uint64_t{4} << 30, of_node = std::uint64_t{5} << 19;
  return config.max_file_bytes != 0 ? config.max_file_bytes : std::max(least, of_node * nodes);
}

double memory_fraction(const Config& config) {
  if (config.options.has("memory.fraction")) return config.options.number("memory.fraction");
  return config.level == Level::extended || config.level == Level::soak ? 0.9 : 0.5;
}

std::uint64_t memory_per_rank(const Topology& topology, double fraction) {
  if (topology.measures_gpus()) {
    const double bytes = gpu_memory_per_rank(topology, fraction);
    const double step = bytes >= 1024.0 * mib ? 256.0 * mib : 16.0 * mib;
    return static_cast<std::uint64_t>(std::floor(bytes / step) * step);
  }
  double least = std::numeric_limits<double>::infinity();
  for (const Node& node : topology.nodes) least = std::min(least, usable_memory(node, fraction));
  const double step = least >= 1024.0 * mib ? 256.0 * mib : 16.0 * mib;
  const double agreed = std::floor(std::max(least, 0.0) / step) * step;
  return static_cast<std::uint64_t>(agreed / topology.max_local_size());
}

namespace {

/// Whether the self-test of its suite's checker runs in it: a case of its own, or one that the suite marks.
bool tests_checker(const Case& c) { return !c.checkers.empty() || c.parameters.contains("checker"); }

/// Those of a suite that --cases selects. What its checker finds counts only once the checker has been
/// tested, so the cheapest case that does so comes with them: a spare one, where the suite has it.
std::vector<Case> cases_of(const Suite& suite, const PlanInput& input) {
  std::vector<Case> cases;
  std::optional<Case> self_test;
  bool applies = false, tested = false, asked = false;
  for (Case& c : suite.plan(input)) {
    if (c.multiplies && !input.topology.no_products.empty()) c.not_applicable = input.topology.no_products;
    const bool tester = tests_checker(c), runs = c.not_applicable.empty();
    c.checkers = suite.checkers();
    c.faults = suite.fault_points();
    asked = asked || (c.spare && runs && input.config.cases_glob != "*" && selected(c, input.config));
    if (!c.spare && selected(c, input.config)) {
      applies = applies || runs;
      tested = tested || (tester && runs);
      cases.push_back(std::move(c));
    } else if (tester && runs && (!self_test || c.expected_s() < self_test->expected_s())) {
      self_test = std::move(c);
    }
  }
  if (self_test && (applies ? !tested : asked && cases.empty())) cases.push_back(std::move(*self_test));
  return cases;
}

/// What /entities, /inventory, /telemetry and /counters take, and which readings of telemetry are kept: the
/// process of the results holds them all while it judges.
void plan_bytes_of_nodes(Plan& plan, const Config& config, const Topology& topology) {
  constexpr double most_samples = 4e6, columns_of_node = 4, columns_of_gpu = 10;
  constexpr double nic_counters = 25, gpu_counters = 30, row_bytes = 12;  // packed; of the first case all
  constexpr double nic_changes = 2, gpu_changes = 4;                      // of each case
  constexpr std::uint64_t entity_bytes = 400;                             // with its row of the inventory
  double columns = 0, series = 0;
  for (const Node& node : topology.nodes) {
    const auto gpus = static_cast<double>(node.gpus.size()), nics = static_cast<double>(node.nics.size());
    columns += columns_of_node + columns_of_gpu * gpus;
    series += 1 + gpus;
    plan.entity_bytes += entity_bytes * (node.socket_pus.size() + node.numa.size() + node.dimms.size() +
                                         node.nics.size() + node.gpus.size() + node.pci_links.size()) +
                         static_cast<std::uint64_t>(row_bytes * (nic_counters * nics + gpu_counters * gpus));
    plan.counter_bytes += row_bytes * (nic_changes * nics + gpu_changes * gpus);
  }
  const double readings = config.telemetry_hz * plan.budget_s;
  if (!config.telemetry_given)
    plan.telemetry_every =
        static_cast<std::size_t>(std::max(1.0, std::ceil(readings * series / most_samples)));
  plan.telemetry_bytes =
      static_cast<std::uint64_t>(readings / static_cast<double>(plan.telemetry_every) * columns * 8);
}

}  // namespace

Plan make_plan(const Config& config, const Topology& topology,
               const std::vector<std::unique_ptr<Suite>>& suites) {
  Plan plan;
  plan.budget_s = config.budget_s();
  plan.memory_per_rank_bytes = config.agreed_memory_bytes != 0
                                   ? config.agreed_memory_bytes
                                   : memory_per_rank(topology, memory_fraction(config));
  plan_bytes_of_nodes(plan, config, topology);
  plan.passes = config.level >= Level::standard ? 3 : 1;
  const PlanInput input{config, topology, plan.memory_per_rank_bytes, config.seed};
  for (const auto& suite : suites) {
    if (std::find(config.suites.begin(), config.suites.end(), suite->name()) == config.suites.end()) continue;
    for (const results::MetricSpec& metric : suite->metrics()) {
      Columns& of =
          plan.columns.try_emplace(fmt::format("{} {}", suite->name(), metric.operation), Columns{0, 0})
              .first->second;
      ++(metric.per_sample ? of.per_sample : of.per_row);
    }
    for (Case& c : cases_of(*suite, input)) plan.cases.push_back(std::move(c));
  }
  if (plan.cases.empty()) throw_usage("--cases: nothing planned matches '" + config.cases_glob + "'");
  fit_required(plan.cases, plan.budget_s);
  add_passes(plan.cases, plan.passes);
  check_names(plan.cases);
  order(plan.cases, config.seed);
  for (Case& c : plan.cases) {
    if (c.not_applicable.empty()) plan.arena_bytes = std::max(plan.arena_bytes, c.bytes);
    c.deadline_s = 10.0 + 4.0 * c.expected_s();
  }
  plan.hash = hash_of(plan, config, topology);
  return plan;
}

std::string plan_text(const Plan& plan, const Config& config, const Topology& topology) {
  std::string out = fmt::format("level {}: budget {}, seed {}, {} rank{} on {} node{}, plan {}\n",
                                to_string(config.level), format_seconds(plan.budget_s), config.seed,
                                topology.size(), topology.size() == 1 ? "" : "s", topology.nodes.size(),
                                topology.nodes.size() == 1 ? "" : "s", plan.hash);
  out += fmt::format("memory per rank: {} agreed, {} used by the largest case\n\n",
                     format_bytes(plan.memory_per_rank_bytes), format_bytes(plan.arena_bytes));
  out += fmt::format("{:<11} {:<44} {:>8} {:>8} {:>9}\n", "stage", "case", "entities", "seconds", "bytes");
  for (const Case& c : plan.cases) {
    if (!c.not_applicable.empty()) {
      out +=
          fmt::format("{:<11} {:<44} not applicable: {}\n", to_string(c.stage), c.path(), c.not_applicable);
      continue;
    }
    out += fmt::format("{:<11} {:<44} {:>8} {:>8.2f} {:>9}{}\n", to_string(c.stage), c.path(), c.entities,
                       c.expected_s(), format_bytes(c.bytes), c.required ? "" : "  if time permits");
  }
  out += fmt::format("\nrequired cases {}, all cases {}, budget {}; results file about {}\n",
                     format_seconds(plan.required_s()), format_seconds(plan.expected_s()),
                     format_seconds(plan.budget_s), format_bytes(plan.file_bytes()));
  out += fmt::format("peak disk use (uncompressed cases and the merged file): {}\n",
                     format_bytes(disk_need(plan).sum()));
  if (plan.telemetry_every > 1)
    out += fmt::format("telemetry: a sample of each part every {}, so that there are at most 4 million\n",
                       format_seconds(static_cast<double>(plan.telemetry_every) / config.telemetry_hz));
  if (const auto most = most_file_bytes(config, topology.nodes.size()); plan.file_bytes() > most)
    out += fmt::format("run refuses this plan: --max-file allows {}\n", format_bytes(most));
  if (config.level == Level::soak && !plan.over_budget().empty())
    out += "run refuses this plan: a segment has no time for the required cases\n";
  for (std::size_t n = 0; n < topology.nodes.size(); ++n) {
    const Node& node = topology.nodes[n];
    const std::size_t devices = topology.ranks_of(static_cast<int>(n)).size();
    out += fmt::format("covers {}: {} device{}, {} NUMA domain{}, {} NIC{}\n", node.hostname, devices,
                       devices == 1 ? "" : "s", node.numa.size(), node.numa.size() == 1 ? "" : "s",
                       node.nics.size(), node.nics.size() == 1 ? "" : "s");
  }
  return out;
}

std::string pairs_text(const Plan& plan, const Config& config, const Topology& topology,
                       const std::vector<std::unique_ptr<Suite>>& suites) {
  const PlanInput input{config, topology, plan.memory_per_rank_bytes, config.seed};
  const EntityTable entities(topology);
  std::string out;
  for (const Case& c : plan.cases) {
    if (!c.not_applicable.empty()) continue;
    for (const auto& suite : suites) {
      if (suite->name() != c.suite) continue;
      for (const Pairing& p : suite->pairings(c, input, entities))
        out += fmt::format("{} {} {} {}\n", c.path(), p.round, entities.name(p.source),
                           entities.name(p.destination));
    }
  }
  return out;
}

std::string planning_text(double begin_s) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return fmt::format("assay: planned in {} of processor time; memory of a rank {}\n",
                     format_seconds(process_cpu_s() - begin_s),
                     format_bytes(static_cast<std::uint64_t>(used.ru_maxrss) * 1024));
}

}  // namespace assay
