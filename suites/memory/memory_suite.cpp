// SPDX-License-Identifier: Apache-2.0
#include "suites/memory/memory_suite.hpp"

#include <algorithm>
#include <set>

#include "kernels/pattern.hpp"
#include "suites/memory/gpu_plan.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"

namespace assay {
namespace {

using kernels::StreamOp;
using memory::PatternShare;
using memory::Working;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

struct LevelPlan {
  std::vector<std::string> ops, patterns;
  double series_s;                   ///< of one bandwidth or latency series
  double patterns_s;                 ///< all patterns together, at the bandwidth a node surely has
  std::uint64_t pattern_node_bytes;  ///< at most, all ranks of a node together
  double retention_s;
};

LevelPlan level_plan(const Config& config, bool gpu) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const std::vector<std::string> ops = {"triad", "copy", "read", "write"};
  const std::vector<std::string> patterns =
      gpu ? memory::gpu_patterns(config.level) : memory::host_patterns(config.level);
  switch (config.level) {
    case Level::smoke: return {{"triad"}, patterns, 0.25, 0.5, 256 * mib, 0};
    case Level::quick: return {ops, patterns, 0.8, 20, all, 0};
    case Level::standard: return {ops, patterns, 2, 200, all, 5};
    case Level::extended: return {ops, patterns, 5, 1800, all, 60};
    case Level::soak: break;
  }
  return {ops, patterns, 5, std::min(1200.0, 0.3 * config.budget_s()), all, 60};
}

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input),
        level_(level_plan(input.config, input.topology.measures_gpus())),
        bandwidth_(memory::sure_bandwidth(input.topology)),
        turns_(std::clamp(input.topology.max_local_size(), 1, 8)) {
    const OptionValues& options = input.config.options;
    if (options.has("memory.ops")) level_.ops = options.list("memory.ops");
    if (options.has("memory.patterns")) level_.patterns = options.list("memory.patterns");
    if (options.has("memory.retention")) level_.retention_s = options.number("memory.retention");
    std::vector<std::string> modes = {"together", "alone"};
    if (options.has("memory.modes")) modes = options.list("memory.modes");
    for (const auto& mode : modes) (mode == "alone" ? alone_ : together_) = true;
    std::erase(level_.patterns, "none");
    for (const RankPlace& place : input.topology.ranks) threads_ = std::max(threads_, place.threads);
  }

  std::vector<Case> cases() {
    std::set<std::string> seen;
    for (const auto& op : level_.ops) {
      if (!seen.insert(op).second) continue;
      if (together_) add_bandwidth(op, true);
      if (alone_) add_bandwidth(op, false);
    }
    add_latency();
    add_patterns();
    add_selftest();
    for (Case& c : memory::gpu_cases(input_, alone_, together_, turns_)) cases_.push_back(std::move(c));
    std::stable_sort(cases_.begin(), cases_.end(),
                     [](const Case& a, const Case& b) { return a.required > b.required; });
    return std::move(cases_);
  }

 private:
  bool on_gpus() const { return input_.topology.measures_gpus(); }

  std::int64_t device_rows(bool together) const { return input_.topology.measured_ranks(together, turns_); }

  /// NUMA domains that threads of some rank count for. Domains without cores have the CPUs of another one.
  std::int64_t domain_rows() const {
    std::int64_t rows = 0;
    for (const NodeKind& kind : input_.topology.kinds()) {
      const std::set<int> cpus = input_.topology.cpus_of(input_.topology.ranks_of(kind.node));
      const Node& node = input_.topology.nodes[static_cast<std::size_t>(kind.node)];
      std::set<int> used;
      for (const int cpu : cpus) used.insert(memory::domain_of(node, node.numa_of({cpu})));
      rows += kind.count * std::max<std::int64_t>(std::ssize(used), 1);
    }
    return rows;
  }

  void set_mode(Case& c, bool together) const {
    c.suite = "memory";
    c.serial = !together;
    c.turns = together ? 1 : turns_;
    c.entities = device_rows(together);
    c.parameters["mode"] = together ? "together" : "alone";
  }

  /// Seven passes must fit: warm-up and at least a few samples, each with its check.
  void set_time(Case& c, double pass_s, double setup_s) const {
    c.min_seconds = std::max(0.1, 7 * pass_s);
    const double wanted = c.serial ? std::max(0.15, 1.5 * level_.series_s / c.turns) : level_.series_s;
    c.seconds = std::max(wanted, c.min_seconds);
    c.overhead_seconds = 0.02 + setup_s;
  }

  void add_bandwidth(const std::string& name, bool together) {
    StreamOp op = StreamOp::triad;
    for (const StreamOp candidate : {StreamOp::read, StreamOp::write, StreamOp::copy})
      if (name == kernels::to_string(candidate)) op = candidate;
    const auto needed = memory::needed_bytes(input_.topology, together);
    const Working w = memory::fit_stream(op, needed, input_.memory_per_rank_bytes, threads_);
    Case c;
    set_mode(c, together);
    c.name = name + (w.cached ? "_cached" : "") + (together ? "-together" : "-alone");
    c.title = name + (w.cached ? " (in caches), " : ", ") + together_words(on_gpus(), together);
    c.share = "bound_share of memory clock x bus width";
    if (together && !on_gpus()) {
      c.entity_kind = "numa";
      c.entities = domain_rows();
    }
    c.bytes = w.bytes;
    c.required = !w.cached && op == StreamOp::triad;
    c.in_every_pass = !w.cached;
    c.operation = "stream";
    c.addresses = true;
    c.parameters["operation"] = name;
    c.parameters["elements"] = w.count;
    c.parameters["cached"] = w.cached ? 1 : 0;
    c.parameters["distribution"] = op == StreamOp::write ? "constant" : "random 50-bit integers";
    if (w.count == 0) c.not_applicable = too_little_memory(0, input_.memory_per_rank_bytes);
    // A lone rank surely has a core's bandwidth; checks and refills move about as much as the pass.
    const double alone = on_gpus() ? bandwidth_ : std::max(bandwidth_, 4e9);
    const double rate = together ? bandwidth_ : alone;
    set_time(c, static_cast<double>(w.moved_bytes) / (2 * rate),
             static_cast<double>(w.bytes) / bandwidth_ / 2);
    cases_.push_back(std::move(c));
  }

  void add_latency() {
    if (!alone_) return;
    const std::uint64_t needed = memory::needed_bytes(input_.topology, false) / mib * mib;
    Case c;
    set_mode(c, false);
    const bool cached = needed > input_.memory_per_rank_bytes;
    c.bytes = cached ? input_.memory_per_rank_bytes / mib * mib : needed;
    c.name = cached ? "latency_cached-alone" : "latency-alone";
    c.operation = "latency";
    c.addresses = true;
    c.title = (cached ? "latency (in caches), " : "latency, ") + together_words(on_gpus(), false);
    c.required = !cached;
    c.in_every_pass = !cached;
    c.parameters["cached"] = cached ? 1 : 0;
    c.parameters["bytes"] = c.bytes;
    if (c.bytes == 0) c.not_applicable = too_little_memory(mib, input_.memory_per_rank_bytes);
    // Building the cycle: about 25 ns for each 64-byte line; many threads of a GPU do it at once, and a load
    // takes it longer.
    if (on_gpus())
      set_time(c, 1e-6 * memory::chase_steps, 0.1);
    else
      set_time(c, 100e-9 * memory::chase_steps, static_cast<double>(c.bytes) / 64 * 25e-9 * crowd());
    c.min_seconds = std::min(c.min_seconds, c.seconds);
    cases_.push_back(std::move(c));
  }

  /// How many ranks compete for a core.
  double crowd() const { return std::max(1.0, 4e9 / bandwidth_); }

  void add_patterns() {
    std::vector<PatternShare> shares;
    std::set<std::string> seen;
    for (const auto& name : level_.patterns) {
      if (!seen.insert(name).second) continue;
      const auto pattern = kernels::make_pattern(name, 0, level_.retention_s);
      PatternShare share{name, pattern.bytes_per_byte(), 0, 0, 0};
      for (const auto& s : pattern.sweeps) share.pause_s += s.pause_s;
      shares.push_back(share);
    }
    const auto ranks = static_cast<std::uint64_t>(std::max(1, input_.topology.max_local_size()));
    const std::uint64_t limit = std::min(input_.memory_per_rank_bytes, level_.pattern_node_bytes / ranks);
    memory::share_time(shares, level_.patterns_s, bandwidth_, limit);
    for (const PatternShare& share : shares) add_pattern(share);
  }

  void add_pattern(const PatternShare& share) {
    Case c;
    set_mode(c, true);
    c.name = "pattern-" + share.name + "-together";
    c.title = "test pattern " + share.name + ", " + together_words(on_gpus(), true);
    c.bytes = share.bytes;
    c.required = true;
    // Its time is what its bytes take; a machine on which they take longer tests fewer of them.
    c.seconds = c.min_seconds = share.seconds;
    c.overhead_seconds = 0.03 + 2 * static_cast<double>(share.bytes) / bandwidth_ / share.bytes_per_byte;
    // GPUs may have to measure their own bandwidth first, with a pass to warm up.
    if (on_gpus())
      c.overhead_seconds += 3 * static_cast<double>(memory::own_bandwidth_bytes(share.bytes)) / bandwidth_;
    c.operation = "pattern";
    c.checkers = {"memory"};  // its self-test is here
    c.addresses = true;
    c.parameters["pattern"] = share.name;
    if (share.pause_s > 0) c.parameters["pause_s"] = level_.retention_s;
    if (share.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = too_little_memory(share.bytes, input_.memory_per_rank_bytes);
    cases_.push_back(std::move(c));
  }

  /// Bandwidth without a pattern needs no more of one than the test of its checker.
  void add_selftest() {
    Case c;
    set_mode(c, true);
    c.name = "selftest-memory";
    c.operation = "selftest";
    c.required = c.spare = true;
    c.bytes = memory::selftest_bytes;
    c.seconds = c.min_seconds = 0.01;
    c.parameters["checker"] = "memory";
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = too_little_memory(c.bytes, input_.memory_per_rank_bytes);
    cases_.push_back(std::move(c));
  }

  const PlanInput& input_;
  LevelPlan level_;
  double bandwidth_;
  int turns_, threads_ = 1;
  bool alone_ = false, together_ = false;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<OptionSpec> MemorySuite::options() const {
  auto patterns = kernels::pattern_names();
  patterns.push_back("none");
  std::vector<OptionSpec> specs = {
      {"memory.fraction",
       OptionKind::number,
       "",
       "share of the free memory for buffers of all suites; by level if not given (0.5, extended and soak "
       "0.9)",
       {},
       "F",
       false,
       false},
      {"memory.patterns", OptionKind::choices, "", "RAM patterns; by level if not given", patterns, "", false,
       false},
      {"memory.ops",
       OptionKind::choices,
       "",
       "bandwidth operations; by level if not given",
       {"read", "write", "copy", "triad"},
       "",
       false,
       false},
      {"memory.modes",
       OptionKind::choices,
       "alone,together",
       "one device of a node at a time, all at once, or both",
       {"alone", "together"},
       "",
       false,
       false},
      {"memory.retention",
       OptionKind::seconds,
       "",
       "idle time of the retention pattern; by level if not given (5 s, extended 60 s)",
       {},
       "TIME",
       false,
       false},
  };
  specs[0].range = Range{1e-3, 0.95};  // the plan of any suite reads it
  specs[1].alone = "none";
  return specs;
}

std::vector<results::MetricSpec> MemorySuite::metrics() const { return memory::metrics().all(); }

std::vector<Case> MemorySuite::plan(const PlanInput& input) const { return Planner(input).cases(); }

void MemorySuite::run(const Case& c, Context& context) {
  if (c.operation == "selftest") return memory::run_selftest(c, context);
  if (c.operation == "pattern") return memory::run_pattern(c, context, own_);
  if (c.operation == "onchip") return memory::run_on_chip(c, context);
  if (c.operation == "copy") return memory::run_copy(c, context);
  if (c.operation == "stream") return memory::run_bandwidth(c, context, own_);
  memory::run_latency(c, context);
}

}  // namespace assay
