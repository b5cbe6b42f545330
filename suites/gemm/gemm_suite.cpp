// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_suite.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/gemm/gemm_job.hpp"

namespace assay {
namespace {

using gemm::Layout;

/// FLOP/s that a core without wide vectors still reaches; sizes are chosen by it, real cores are 3 to 10
/// times faster.
double slow_core_flops(NumType type) { return type == NumType::fp64 ? 1e10 : 2e10; }
constexpr double optimism = 4;
constexpr std::size_t exact_n = 512;

struct LevelPlan {
  std::vector<std::size_t> sizes;
  double series_s;   ///< of the n = 1024 series
  double longest_s;  ///< a size whose one GEMM may take longer on a slow core is left out
  int exact_rounds;
  double sustained_s;
};

LevelPlan level_plan(const Config& config) {
  switch (config.level) {
    case Level::smoke:
      return {{1024}, 0.35, 0.5, 1, 0};
    case Level::quick:
      return {{1024, 2048}, 1.0, 2.5, 4, 0};
    case Level::standard:
      return {{1024, 2048, 4096}, 2.0, 16, 8, 0};
    case Level::extended:
      return {{1024, 2048, 4096, 8192}, 5.0, 130, 32, 300};
    case Level::soak:
      break;
  }
  return {{1024, 2048, 4096}, 5.0, 130, 32, std::min(1800.0, config.duration_s / 4)};
}

/// The slowest share of cores a rank has: its threads divided by the ranks that compete for each core.
double slowest_rank_cores(const Topology& topology) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    std::set<int> cpus;
    double threads = 0, fewest = std::numeric_limits<double>::infinity();
    for (const RankPlace& place : topology.ranks) {
      if (place.node != static_cast<int>(node)) continue;
      cpus.insert(place.cpus.begin(), place.cpus.end());
      threads += place.threads;
      fewest = std::min(fewest, static_cast<double>(place.threads));
    }
    const double load = cpus.empty() ? 1 : std::max(1.0, threads / static_cast<double>(cpus.size()));
    least = std::min(least, fewest / load);
  }
  return std::isfinite(least) && least > 0 ? least : 1;
}

/// The cache a rank's matrices must exceed: the largest share of last-level cache behind any rank.
std::uint64_t cache_share(const Topology& topology) {
  std::uint64_t largest = 0;
  for (const RankPlace& place : topology.ranks)
    largest =
        std::max(largest, topology.nodes[static_cast<std::size_t>(place.node)].llc_bytes_of(place.cpus));
  return largest;
}

std::size_t parse_size(const std::string& text) {
  const bool digits =
      !text.empty() && text.size() <= 6 && text.find_first_not_of("0123456789") == std::string::npos;
  const std::size_t n = digits ? std::stoul(text) : 0;
  if (n < 16 || n > 65536) throw_usage("--gemm.sizes: '" + text + "' is no matrix size (16 to 65536)");
  return n;
}

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input),
        level_(level_plan(input.config)),
        cores_(slowest_rank_cores(input.topology)),
        cache_(cache_share(input.topology)),
        turns_(std::clamp(input.topology.max_local_size(), 1, 8)) {
    const OptionValues& options = input.config.options;
    const auto list = [&](const char* name, std::vector<std::string> otherwise) {
      return options.has(name) ? options.list(name) : std::move(otherwise);
    };
    for (const auto& text : list("gemm.dtypes", {"fp32", "fp64"})) types_.push_back(gemm::type_from(text));
    for (const auto& text : list("gemm.sizes", {})) sizes_.push_back(parse_size(text));
    for (const auto& mode : list("gemm.modes", {"together", "alone"})) {
      if (mode != "alone" && mode != "together")
        throw_usage("--gemm.modes: '" + mode + "' is neither alone nor together");
      (mode == "alone" ? alone_ : together_) = true;
    }
    if (options.has("gemm.sustained")) level_.sustained_s = options.number("gemm.sustained");
    given_sizes_ = !sizes_.empty();
    sort_unique(types_);
    sort_unique(sizes_);
    std::reverse(types_.begin(), types_.end());  // fp32 first: the cheaper one
  }

  std::vector<Case> cases() {
    for (const NumType type : types_) add_type(type);
    std::stable_sort(cases_.begin(), cases_.end(),
                     [](const Case& a, const Case& b) { return a.required > b.required; });
    return std::move(cases_);
  }

 private:
  double single_s(NumType type, std::size_t n) const {
    return GemmShape{n, n, n}.flops() / (slow_core_flops(type) * cores_);
  }

  /// The sizes of the level that a slow core gets through in time, or the largest smaller power of two.
  std::vector<std::size_t> sizes_of(NumType type) const {
    if (given_sizes_) return sizes_;
    std::vector<std::size_t> sizes;
    for (const std::size_t n : level_.sizes)
      if (single_s(type, n) <= level_.longest_s) sizes.push_back(n);
    std::size_t n = level_.sizes.front();
    while (sizes.empty()) {
      if (n <= 256 || single_s(type, n) <= level_.longest_s) sizes.push_back(n);
      n /= 2;
    }
    return sizes;
  }

  void add_type(NumType type) {
    const bool smoke = input_.config.level == Level::smoke;
    if (type != NumType::fp32 && type != NumType::fp64) {
      Case c = make(type, 0, true, "matrix");
      c.not_applicable = "the host device computes fp32 and fp64, not " + std::string(to_string(type));
      cases_.push_back(std::move(c));
      return;
    }
    const auto sizes = sizes_of(type);
    std::size_t main = sizes.front();
    for (const std::size_t n : sizes)
      if (fits(type, n)) main = n;
    for (const std::size_t n : sizes) {
      if (together_) add_series(type, n, true, n == main);
      // A gate of 15 s has time for one precision alone.
      if (alone_ && (!smoke || type == types_.front())) add_series(type, n, false, n == main);
    }
    add_exact(type);
    if (!smoke)
      for (const bool together : {true, false})
        if (together ? together_ : alone_) add_peak(type, together);
    if (level_.sustained_s > 0 && together_) add_sustained(type, main);
  }

  bool fits(NumType type, std::size_t n) const {
    return gemm::make_layout(type, n, cache_, input_.memory_per_rank_bytes).bytes() <=
           input_.memory_per_rank_bytes;
  }

  Case make(NumType type, std::size_t n, bool together, const std::string& what) const {
    const char* mode = together ? "together" : "alone";
    Case c;
    c.suite = "gemm";
    c.name = std::string(to_string(type)) + "-" + what + "-" + mode;
    c.serial = !together;
    c.turns = together ? 1 : turns_;
    for (std::size_t node = 0; node < input_.topology.nodes.size(); ++node) {
      const auto ranks = static_cast<std::int64_t>(input_.topology.ranks_of(static_cast<int>(node)).size());
      c.entities += together ? ranks : std::min<std::int64_t>(ranks, c.turns);
    }
    c.parameters["dtype"] = to_string(type);
    c.parameters["mode"] = mode;
    if (n > 0) c.parameters["n"] = n;
    return c;
  }

  /// Sets the arena bytes, or the reason why they cannot be had.
  Layout place(Case& c, NumType type, std::size_t n, std::uint64_t cache) const {
    const Layout layout = gemm::make_layout(type, n, cache, input_.memory_per_rank_bytes);
    c.bytes = layout.bytes();
    c.parameters["cache_bytes"] = cache;
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = "needs " + format_bytes(c.bytes) + " per rank, the plan may use " +
                         format_bytes(input_.memory_per_rank_bytes);
    return layout;
  }

  /// Filling inputs and poisoning results of one rank, at 0.5 GB/s per core.
  double setup_s(const Layout& layout) const {
    return 0.03 + static_cast<double>(layout.bytes()) / (5e8 * std::max(1.0, optimism * cores_));
  }

  void add_series(NumType type, std::size_t n, bool together, bool main) {
    Case c = make(type, n, together, "n" + std::to_string(n));
    const Layout layout = place(c, type, n, cache_);
    // Alone, a rank has its cores for itself.
    const double likely_s = single_s(type, n) / optimism * (together ? 1 : std::min(1.0, cores_));
    const double scale = std::max(0.5, std::pow(static_cast<double>(n) / 1024.0, 1.4));
    const double whole_s = level_.series_s * scale;
    c.min_seconds = std::max(0.1, 7 * likely_s);
    c.seconds = together ? whole_s : std::max(0.2, whole_s / c.turns);
    c.seconds = std::max(c.seconds, c.min_seconds);
    c.overhead_seconds = setup_s(layout) + 1.2 * gemm::peak_seconds(input_.config.level) * c.turns;
    c.required = main;
    c.in_every_pass = true;
    c.parameters["distribution"] = "uniform[-1,1)";
    c.parameters["layout"] = "row-major C=AB";
    cases_.push_back(std::move(c));
  }

  void add_sustained(NumType type, std::size_t n) {
    Case c = make(type, n, true, "sustained-n" + std::to_string(n));
    const Layout layout = place(c, type, n, cache_);
    c.seconds = level_.sustained_s;
    c.min_seconds = std::min(level_.sustained_s, std::max(10.0, 7 * single_s(type, n) / optimism));
    c.overhead_seconds = setup_s(layout) + 0.5;
    c.required = false;
    c.parameters["distribution"] = "uniform[-1,1)";
    c.parameters["layout"] = "row-major C=AB";
    c.parameters["sustained_s"] = level_.sustained_s;
    cases_.push_back(std::move(c));
  }

  void add_exact(NumType type) {
    Case c = make(type, exact_n, true, "exact");
    c.name = std::string(to_string(type)) + "-exact-n" + std::to_string(exact_n);
    place(c, type, exact_n, 0);
    const double round_s = 0.03 / std::min(1.0, cores_);  // the golden, inputs and the comparison
    c.min_seconds = c.seconds = 0.01 * level_.exact_rounds / std::min(1.0, cores_);
    c.overhead_seconds = 0.02 + round_s * level_.exact_rounds;
    c.required = true;
    c.parameters["rounds"] = level_.exact_rounds;
    c.parameters["distribution"] = "integers";
    cases_.push_back(std::move(c));
  }

  void add_peak(NumType type, bool together) {
    Case c = make(type, 0, together, "peak");
    c.seconds = together ? 0.5 * level_.series_s : std::max(0.15, 0.5 * level_.series_s / c.turns);
    c.min_seconds = 0.15;
    c.required = false;
    c.in_every_pass = true;
    cases_.push_back(std::move(c));
  }

  const PlanInput& input_;
  LevelPlan level_;
  double cores_;
  std::uint64_t cache_;
  int turns_;
  std::vector<NumType> types_;
  std::vector<std::size_t> sizes_;
  bool given_sizes_ = false, alone_ = false, together_ = false;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<OptionSpec> GemmSuite::options() const {
  return {
      {"gemm.dtypes",
       OptionKind::choices,
       "fp32,fp64",
       "number types to multiply",
       {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"},
       "",
       false,
       false},
      {"gemm.sizes",
       OptionKind::list,
       "",
       "matrix sizes n (n x n x n); by level if not given",
       {},
       "N",
       false,
       false},
      {"gemm.modes",
       OptionKind::choices,
       "alone,together",
       "one device of a node at a time, all at once, or both",
       {"alone", "together"},
       "",
       false,
       false},
      {"gemm.sustained",
       OptionKind::seconds,
       "",
       "length of the sustained series; by level if not given (extended: 300 s), 0 for none",
       {},
       "TIME",
       false,
       false},
  };
}

std::vector<MetricInfo> GemmSuite::metrics() const {
  return {
      {"<dtype>-n<N>", "throughput", "FLOP/s", "higher", "2 n^3 divided by the time of one multiplication"},
      {"<dtype>-n<N>", "efficiency", "1", "higher",
       "median throughput as a fraction of this device's own FMA peak"},
      {"<dtype>-sustained-n<N>", "throughput", "FLOP/s", "higher", "the same over minutes"},
      {"<dtype>-peak", "throughput", "FLOP/s", "higher",
       "multiply-adds in registers on all cores of the device"},
      {"<dtype>-exact-n512", "errors", "count", "lower",
       "elements that differ from the exact integer result"},
  };
}

std::vector<Case> GemmSuite::plan(const PlanInput& input) const { return Planner(input).cases(); }

void GemmSuite::run(const Case& c, Context& context) {
  const std::string operation = c.name.substr(c.name.find('-') + 1);
  if (operation.starts_with("exact")) return gemm::run_exact(c, context);
  if (operation.starts_with("peak")) return gemm::run_peak(c, context);
  gemm::run_throughput(c, context);
}

}  // namespace assay
