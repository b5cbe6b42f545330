// SPDX-License-Identifier: Apache-2.0
#include "suites/gemm/gemm_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/gemm/algorithms.hpp"
#include "suites/gemm/gemm_profile.hpp"
#include "suites/gemm/gemm_work.hpp"
#include "topology/gpu_bounds.hpp"

namespace assay::gemm {
namespace {

constexpr std::size_t exact_n = 512;

struct LevelPlan {
  double series_s;   ///< of the n = 1024 series
  double longest_s;  ///< a size whose one GEMM may take longer on a slow core is left out
  int exact_rounds;
  double sustained_s;
};

LevelPlan level_plan(const Config& config) {
  switch (config.level) {
    case Level::smoke: return {0.35, 0.5, 1, 0};
    case Level::quick: return {1.0, 2.5, 4, 0};
    case Level::standard: return {2.0, 16, 8, 0};
    case Level::extended: return {5.0, 130, 32, 300};
    case Level::soak: break;
  }
  return {5.0, 130, 32, std::min(1800.0, config.budget_s() / 4)};
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
        profile_(profile_of(input.topology, input.config.level)),
        turns_(std::clamp(input.topology.max_local_size(), 1, 8)) {
    const OptionValues& options = input.config.options;
    const auto list = [&](const char* name, std::vector<std::string> otherwise) {
      return options.has(name) ? options.list(name) : std::move(otherwise);
    };
    for (const auto& text : list("gemm.dtypes", {})) types_.push_back(type_from(text));
    if (types_.empty()) types_ = profile_.types;
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
    // The cheapest first.
    std::stable_sort(types_.begin(), types_.end(),
                     [&](NumType a, NumType b) { return profile_.slow_flops(a) > profile_.slow_flops(b); });
  }

  std::vector<Case> cases() {
    for (const NumType type : types_) add_type(type);
    std::stable_sort(cases_.begin(), cases_.end(),
                     [](const Case& a, const Case& b) { return a.required > b.required; });
    return std::move(cases_);
  }

 private:
  double single_s(NumType type, std::size_t n) const {
    return GemmShape{n, n, n}.flops() / profile_.slow_flops(type);
  }

  /// The sizes of the level that a slow core gets through in time, or the largest smaller power of two.
  std::vector<std::size_t> sizes_of(NumType type) const {
    if (given_sizes_) return sizes_;
    std::vector<std::size_t> sizes;
    for (const std::size_t n : profile_.sizes(input_.config.level))
      if (single_s(type, n) <= level_.longest_s) sizes.push_back(n);
    std::size_t n = profile_.sizes(input_.config.level).front();
    while (sizes.empty()) {
      if (n <= 256 || single_s(type, n) <= level_.longest_s) sizes.push_back(n);
      n /= 2;
    }
    return sizes;
  }

  void add_type(NumType type) {
    const bool smoke = input_.config.level == Level::smoke;
    if (const std::string why = profile_.lacks(type); !why.empty()) {
      Case c = make(type, 0, true, "matrix");
      c.operation = "product";
      c.not_applicable = why;
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
    // The units that multiply matrices have no loop of their own to compare with.
    if (!smoke && (type == NumType::fp32 || type == NumType::fp64))
      for (const bool together : {true, false})
        if (together ? together_ : alone_) add_peak(type, together);
    if (profile_.gpu && together_ && input_.config.level >= Level::standard && !given_sizes_) add_best(type);
    if (level_.sustained_s > 0 && together_) add_sustained(type, main);
  }

  bool fits(NumType type, std::size_t n) const {
    return workload::make_product_layout(type, {n, n, n}, profile_.cache_bytes, input_.memory_per_rank_bytes)
               .bytes() <= input_.memory_per_rank_bytes;
  }

  Case make(NumType type, std::size_t n, bool together, const std::string& what) const {
    const char* mode = together ? "together" : "alone";
    Case c;
    c.suite = "gemm";
    c.multiplies = true;
    c.name = std::string(to_string(type)) + "-" + what + "-" + mode;
    c.serial = !together;
    c.turns = together ? 1 : turns_;
    c.entities = input_.topology.measured_ranks(together, c.turns);
    c.title = std::string(to_string(type)) + " GEMM" + (n > 0 ? " n=" + std::to_string(n) : "") + ", " +
              together_words(profile_.gpu, together);
    c.share = profile_.gpu ? "bound_share of SMs x clock x operations" : "efficiency of FMA peak";
    c.parameters["dtype"] = to_string(type);
    c.parameters["mode"] = mode;
    if (n > 0) c.parameters["n"] = n;
    return c;
  }

  /// Of the fastest GPU, as far as the driver tells what bounds it.
  double fastest_flops(NumType type) const {
    double fastest = Profile::optimism * profile_.slow_flops(type);
    for (const NodeKind& kind : input_.topology.kinds())
      for (const Gpu& gpu : input_.topology.nodes[static_cast<std::size_t>(kind.node)].gpus)
        if (const GpuBound bound = math_bound(gpu, to_string(type)); bound.known())
          fastest = std::max(fastest, bound.rate);
    return fastest;
  }

  /// Sets the arena bytes, or the reason why they cannot be had.
  workload::ProductLayout place(Case& c, NumType type, const GemmShape& shape, std::uint64_t cache,
                                Output output = Output::native) const {
    workload::ProductLayout layout =
        workload::make_product_layout(type, shape, cache, input_.memory_per_rank_bytes, output);
    if (profile_.gpu && output == Output::native) {
      // As much work as hides what it costs to start it, all of whose results are kept until they are
      // checked.
      const double flop = hidden_s * fastest_flops(type);
      layout = workload::with_batch(layout, flop, shape, input_.memory_per_rank_bytes / 2);
      c.parameters["batch_flop"] = flop;
    }
    c.bytes = std::max<std::uint64_t>(c.bytes, layout.bytes());
    c.parameters["cache_bytes"] = cache;
    if (c.bytes > input_.memory_per_rank_bytes)
      c.not_applicable = "needs " + format_bytes(c.bytes) + " per rank, the plan may use " +
                         format_bytes(input_.memory_per_rank_bytes);
    return layout;
  }

  /// Filling inputs and poisoning results of one rank, at 0.5 GB/s per core.
  double setup_s(const workload::ProductLayout& layout) const {
    return 0.03 +
           static_cast<double>(layout.bytes()) / (5e8 * std::max(1.0, Profile::optimism * profile_.share));
  }

  void add_series(NumType type, std::size_t n, bool together, bool main) {
    Case c = make(type, n, together, "n" + std::to_string(n));
    c.operation = "product";
    const workload::ProductLayout layout = place(c, type, {n, n, n}, profile_.cache_bytes);
    // Alone, a rank has its cores for itself.
    const double likely_s =
        single_s(type, n) / Profile::optimism * (together ? 1 : std::min(1.0, profile_.share));
    const double scale = profile_.gpu ? 1 : std::max(0.5, std::pow(static_cast<double>(n) / 1024.0, 1.4));
    const double whole_s = level_.series_s * scale;
    c.min_seconds = std::max(0.1, 7 * likely_s);
    c.seconds = together ? whole_s : std::max(0.2, whole_s / c.turns);
    c.seconds = std::max(c.seconds, c.min_seconds);
    c.overhead_seconds = setup_s(layout) + 1.2 * peak_seconds(input_.config.level) * c.turns;
    c.required = main;
    c.in_every_pass = true;
    c.parameters["distribution"] = "uniform[-1,1)";
    c.parameters["layout"] = plain_product(type, {}).transpose_b ? "row-major C=AB^T" : "row-major C=AB";
    cases_.push_back(std::move(c));
  }

  /// Where a library is fastest differs from GPU to GPU, and 8192 is rarely it.
  void add_best(NumType type) {
    Case c = make(type, 0, true, "best");
    c.operation = "best";
    workload::ProductLayout largest;
    for (const GemmShape& shape : shapes_to_search()) {
      const workload::ProductLayout layout = place(c, type, shape, 0);
      if (layout.bytes() > largest.bytes()) largest = layout;
    }
    c.seconds = level_.series_s;
    c.min_seconds = 0.2;
    c.overhead_seconds = setup_s(largest);
    c.parameters["search"] = shapes_to_search().size();
    c.parameters["distribution"] = "uniform[-1,1)";
    c.parameters["layout"] = plain_product(type, {}).transpose_b ? "row-major C=AB^T" : "row-major C=AB";
    cases_.push_back(std::move(c));
  }

  void add_sustained(NumType type, std::size_t n) {
    Case c = make(type, n, true, "sustained-n" + std::to_string(n));
    c.operation = "sustained";
    const workload::ProductLayout layout = place(c, type, {n, n, n}, profile_.cache_bytes);
    const double likely_s = single_s(type, n) / Profile::optimism;
    c.seconds = level_.sustained_s;
    c.min_seconds = std::min(level_.sustained_s, std::max(10.0, 7 * likely_s));
    // What has shown in minutes shows again in a part of them; retests of a soak have little time.
    c.retest_seconds = std::max({60.0, input_.config.budget_s() / 30, c.min_seconds});
    // The rate is learnt from four products, or from a long one.
    c.overhead_seconds = setup_s(layout) + 0.5 + (likely_s < long_product_s ? 4 : 1) * likely_s;
    c.required = false;
    c.parameters["distribution"] = "uniform[-1,1)";
    c.parameters["layout"] = plain_product(type, {}).transpose_b ? "row-major C=AB^T" : "row-major C=AB";
    c.parameters["sustained_s"] = level_.sustained_s;
    cases_.push_back(std::move(c));
  }

  void add_exact(NumType type) {
    Case c = make(type, exact_n, true, "exact");
    c.operation = "exact";
    c.checkers = {"gemm"};  // its self-test is here
    c.name = std::string(to_string(type)) + "-exact-n" + std::to_string(exact_n);
    c.title = std::string(to_string(type)) + " GEMM of integers, every element";
    place(c, type, {exact_n, exact_n, exact_n}, 0, Output::exact);
    const double round_s = 0.03 / std::min(1.0, profile_.share);  // the golden, inputs and the comparison
    c.min_seconds = c.seconds = 0.01 * level_.exact_rounds / std::min(1.0, profile_.share);
    c.overhead_seconds = 0.02 + round_s * level_.exact_rounds;
    c.required = true;
    c.parameters["rounds"] = level_.exact_rounds;
    c.parameters["distribution"] = "integers";
    cases_.push_back(std::move(c));
  }

  void add_peak(NumType type, bool together) {
    Case c = make(type, 0, together, "peak");
    c.operation = "peak";
    c.title = std::string(to_string(type)) + " FMA peak, " + together_words(profile_.gpu, together);
    c.seconds = together ? 0.5 * level_.series_s : std::max(0.15, 0.5 * level_.series_s / c.turns);
    c.min_seconds = 0.15;
    c.required = false;
    c.in_every_pass = true;
    cases_.push_back(std::move(c));
  }

  const PlanInput& input_;
  LevelPlan level_;
  Profile profile_;
  int turns_;
  std::vector<NumType> types_;
  std::vector<std::size_t> sizes_;
  bool given_sizes_ = false, alone_ = false, together_ = false;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<Case> plan_cases(const PlanInput& input) { return Planner(input).cases(); }

}  // namespace assay::gemm
