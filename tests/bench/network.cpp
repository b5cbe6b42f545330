// SPDX-License-Identifier: Apache-2.0
// Network time of the required pair cases of `standard` on nodes of 8 ranks, as the plan of the suites has
// it, with the retests that the verdict asks for; and what simulated runs of these cases name: five nodes
// whose NIC is 20 % slower, and one pair of nodes at half its rate. Nodes have one device, with as many
// partners as a rank has by the plan, and a link has 6 samples: less than the plan has for a node.
//   assay_network [--seconds S] [--met SHARE] RUNS NODES...
//   assay_network --plan NODES...
// --seconds: fails where a run takes more network time, misses a node, a pair that it measured, or names
// another. --met: fails where a smaller share of the bad pairs was measured. --plan: prints what the plan has
// for pairs, groups and all ranks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "made_cluster.hpp"
#include "run/planner.hpp"
#include "run/retest.hpp"
#include "simulate/catalogue.hpp"
#include "simulate/machine.hpp"
#include "simulate/simulate.hpp"
#include "suites/p2p/sweep.hpp"
#include "topology/discover.hpp"

namespace {

using namespace assay;
using namespace assay::bench;

constexpr const char* modelled = "bandwidth-uni-4194304-cross-mpi";
constexpr const char* meetings = "bandwidth-uni-262144-cross-mpi";
const std::vector<std::string> cases = {modelled, "latency-8-cross-mpi", meetings};
constexpr int bad_nodes = 5;

/// The plan of one of these cases.
struct Planned {
  std::vector<std::unique_ptr<Suite>> suites = make_suites();
  Topology topology;
  Plan plan;
  std::unique_ptr<EntityTable> entities;

  Planned(int nodes, const std::string& case_name) {
    const Gathered told = gathered(nodes);
    const Config config = made_config(suites, "standard", "none.h5", "p2p/" + case_name);
    topology = discover(told.nodes, told.places, 0, 0);
    plan = make_plan(config, topology, suites);
    entities = std::make_unique<EntityTable>(topology);
  }
  const Case& only() const {
    for (const Case& c : plan.cases)
      if (c.suite == "p2p" && c.name.find("selftest") == std::string::npos) return c;
    throw Error(ErrorKind::internal, "the plan has no such case");
  }
};

/// What one simulated run took and named.
struct Outcome {
  double seconds = 0;
  std::size_t retest_rounds = 0;
  int nodes = 0, wrong = 0;        ///< bad nodes that FAIL, and others but the ends of the bad pair
  bool met = false, pair = false;  ///< the bad pair was measured, a finding names it
};

class Trial {
 public:
  explicit Trial(int nodes) : nodes_(nodes) {
    for (const std::string& name : cases) {
      auto planned = std::make_unique<Planned>(nodes, name);
      if (!planned->only().required) continue;
      cases_.push_back(name);
      plans_.push_back(std::move(planned));
    }
  }

  double screening_s() const {
    double sum = 0;
    for (const auto& planned : plans_) sum += planned->only().expected_s();
    return sum;
  }
  /// The most rounds of a case, two directions a pair: of all ranks in each, or of one of each node.
  std::int64_t rounds() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < plans_.size(); ++i) most = std::max(most, rounds_of(i));
    return most;
  }

  Outcome run(int number) const {
    simulate::Spec spec = faulty(number);
    add_swept(spec);
    Outcome out;
    out.seconds = screening_s();
    results::Results r = simulate::screen(spec);
    verdict::Options options = verdict::options_from(r);
    std::size_t before = r.cases.size();
    simulate::run_retests(r, spec, options);
    for (; before < r.cases.size(); ++before) add_retest(r.cases[before], out);
    const auto verdict = verdict::judge(r, options);
    count(r, verdict, out);
    return out;
  }

 private:
  static std::set<int> drawn(int number, int nodes, int count) {
    const auto order =
        RandomStream(static_cast<std::uint64_t>(number), "bad").permutation(static_cast<std::size_t>(nodes));
    std::set<int> some;
    for (int i = 0; i < count; ++i) some.insert(static_cast<int>(order[static_cast<std::size_t>(i)]));
    return some;
  }
  std::set<int> bad(int number) const { return drawn(number, nodes_, bad_nodes); }
  std::pair<int, int> bad_pair(int number) const {
    std::vector<int> ends;
    const std::set<int> taken = bad(number);
    for (const int node : drawn(number + 1000, nodes_, bad_nodes + 2))
      if (!taken.contains(node)) ends.push_back(node);
    return {ends.at(0), ends.at(1)};
  }

  std::int64_t rounds_of(std::size_t i) const {
    const Planned& planned = *plans_[i];
    const std::int64_t of_all = planned.only().entities / planned.topology.size();
    return cases_[i] == meetings ? std::min<std::int64_t>(planned.only().entities / nodes_, nodes_ - 1)
                                 : of_all;
  }

  simulate::Spec faulty(int number) const {
    simulate::Spec spec;
    spec.nodes = nodes_;
    spec.samples = 6;
    spec.run = static_cast<std::uint64_t>(number);
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const bool meets = cases_[i] == meetings;
      spec.metrics.push_back(
          simulate::pick_metrics({fmt::format("p2p/{}:*", meets ? modelled : cases_[i])}).front());
      spec.metrics.back().name = cases_[i];
      const std::int64_t usual = nodes_ > 64 ? 12 : nodes_ - 1 + nodes_ % 2;  // of simulated pairs
      if (meets || rounds_of(i) < usual) spec.metrics.back().rounds = rounds_of(i);
    }
    const std::set<int> slow = bad(number);
    spec.faults.push_back(simulate::parse_fault(
        fmt::format("slow:nic=0,node={},percent=20", fmt::join(slow.begin(), slow.end(), "+"))));
    const auto [a, b] = bad_pair(number);
    spec.faults.push_back(simulate::parse_fault(fmt::format("slowlink:pair={}>{},percent=50", a, b)));
    return spec;
  }

  /// The pairs that seem slow in the sweep of those that the case leaves out, as p2p finds them. The faster
  /// of two samples counts; one in fifty of these is disturbed and has any share of its rate.
  void add_swept(simulate::Spec& spec) const {
    const auto at = std::find_if(spec.metrics.begin(), spec.metrics.end(),
                                 [](const auto& m) { return m.name == meetings; });
    if (at == spec.metrics.end() || at->rounds >= nodes_ - 1) return;
    const simulate::Machine machine(spec);
    const RandomStream noise = machine.run_stream("sweep");
    const auto rate = [&](int from, int to) {
      double best = 0;
      for (std::uint64_t sample = 0; sample < p2p::sweep_samples; ++sample) {
        const std::uint64_t place =
            ((static_cast<std::uint64_t>(from) << 32 | static_cast<unsigned>(to)) << 2) + 2 * sample;
        const double share = noise.uniform(place + 1);
        best = std::max(best, noise.uniform(place) < 0.02 ? share : 1 + 0.05 * (share - 0.5));
      }
      return best * std::exp(machine.log_link(*at, from, to, 0));
    };
    const auto met_by = [&](int a, bool back) {
      std::vector<p2p::Met> met;
      for (int b = 0; b < nodes_; ++b)
        if (a != b) met.push_back({b, rate(a, b), back ? rate(b, a) : 0});
      return met;
    };
    std::vector<p2p::Usual> of_nodes;
    for (int a = 0; a < nodes_; ++a) of_nodes.push_back(p2p::usual_rate(met_by(a, true)));
    const std::vector<p2p::Usual> usual = p2p::usual_rates(of_nodes);
    std::vector<p2p::Suspect> suspects;
    for (int a = 0; a < nodes_; ++a)
      for (const p2p::Suspect& one : p2p::suspects_of(a, met_by(a, false), usual)) suspects.push_back(one);
    Topology single;  // a rank a node
    for (int node = 0; node < nodes_; ++node) {
      single.nodes.emplace_back();
      RankPlace& place = single.ranks.emplace_back();
      place.rank = place.node = node;
    }
    single.index_ranks();
    p2p::Schedule rounds = p2p::rounds_of(suspects, single);
    const auto first = static_cast<std::size_t>(at->rounds);
    p2p::fill(rounds, {single, machine.run_stream("fill"), first, single.nodes.size()}, single);
    for (const p2p::Round& round : rounds) {
      auto& pairs = at->more_rounds.emplace_back();
      for (const p2p::Pair& pair : round) pairs.emplace_back(pair.a, pair.b);
    }
  }

  /// As long as it takes by the plan of its case.
  void add_retest(const results::CaseData& c, Outcome& out) const {
    const std::string base = c.name.substr(0, c.name.rfind(".c"));
    const auto at = std::find(cases_.begin(), cases_.end(), base);
    if (at == cases_.end()) throw Error(ErrorKind::internal, "no plan of " + c.name);
    const Planned& planned = *plans_[static_cast<std::size_t>(at - cases_.begin())];
    const results::Metric* round = c.find("round");
    if (round == nullptr || round->values.empty())
      throw Error(ErrorKind::internal, c.name + " has no rounds");
    RetestOrder order;
    order.path = c.suite + "/" + base;
    const auto rounds = round->values.held();
    order.rounds.resize(1 + static_cast<std::size_t>(*std::max_element(rounds.begin(), rounds.end())));
    for (auto& links : order.rounds) links.emplace_back(0, 1);
    out.retest_rounds += order.rounds.size();
    out.seconds +=
        retest_case(planned.plan, std::move(order), planned.topology, *planned.entities).expected_s();
  }

  void count(const results::Results& r, const results::VerdictData& verdict, Outcome& out) const {
    const int number = static_cast<int>(r.config.at("simulated").at("run").get<std::int64_t>());
    const std::set<int> slow = bad(number);
    const auto [a, b] = bad_pair(number);
    std::vector<int> node_of(r.entities.size(), -1);
    int nodes = 0;
    for (std::size_t row = 0; row < r.entities.size(); ++row) {
      const results::Entity& e = r.entities[row];
      node_of[row] = e.kind == "node" ? nodes++
                     : e.parent >= 0  ? node_of[static_cast<std::size_t>(e.parent)]
                                      : -1;
    }
    for (const results::EntityState& state : verdict.entities) {
      const auto row = static_cast<std::size_t>(state.entity);
      if (r.entities[row].kind != "node" || state.state != "FAIL") continue;
      const int node = node_of[row];
      if (slow.contains(node))
        ++out.nodes;
      else if (node != a && node != b)
        ++out.wrong;
    }
    const auto name = [&](int node) {
      for (std::size_t row = 0; row < r.entities.size(); ++row)
        if (r.entities[row].kind == "device" && node_of[row] == node) return r.entities[row].name;
      return std::string();
    };
    for (const results::CaseData& c : r.cases)
      for (std::size_t i = 0; i < c.source.size(); ++i)
        out.met = out.met || (c.name.find(".c") == std::string::npos &&
                              node_of[static_cast<std::size_t>(c.source[i])] == a &&
                              node_of[static_cast<std::size_t>(c.destination[i])] == b);
    for (const results::Finding& f : verdict.findings)
      out.pair = out.pair || ((f.severity == "FAIL" || f.severity == "WARN") &&
                              (f.name + f.text).find(name(a)) != std::string::npos &&
                              (f.name + f.text).find(name(b)) != std::string::npos);
  }

  std::vector<std::string> cases_;
  int nodes_;
  std::vector<std::unique_ptr<Planned>> plans_;
};

/// What a case takes in the network: its rounds and the time of each, where they are told.
std::string time_of(const Case& c, std::int64_t nodes) {
  if (c.parameters.value("meetings", false)) {
    const std::int64_t rounds = c.entities / nodes;  // of one rank of each node
    return fmt::format("{}{}: {:.1f} s", std::min(rounds, nodes - 1),
                       rounds < nodes - 1 ? " and the sweep" : "", c.expected_s());
  }
  if (c.rounds == 0) return fmt::format("{:.1f} s", c.expected_s());
  return fmt::format("{} x {:.2f} s", c.rounds, c.seconds / static_cast<double>(c.rounds));
}

/// The plan of `standard`, first pass: required cases with messages between ranks one by one, and how long
/// all cases of each stage take.
void print_plan(const std::vector<int>& sizes) {
  constexpr std::array stages = {Stage::pairs, Stage::groups, Stage::world};
  std::vector<std::string> names;
  std::map<std::string, std::map<int, std::string>> cells;
  const auto cell = [&](const std::string& name, int nodes, std::string text) {
    if (cells.try_emplace(name).second) names.push_back(name);
    cells[name][nodes] = std::move(text);
  };
  const auto suites = make_suites();
  for (const int nodes : sizes) {
    const Gathered told = gathered(nodes);
    const Plan plan = make_plan(made_config(suites, "standard", "none.h5"),
                                discover(told.nodes, told.places, 0, 0), suites);
    std::map<Stage, std::pair<double, double>> seconds;  // required, all
    std::map<std::string, std::string> required;
    for (const Case& c : plan.cases) {
      if (!c.not_applicable.empty() || c.base_path() != c.path() || std::ranges::count(stages, c.stage) == 0)
        continue;
      seconds[c.stage].second += c.expected_s();
      if (!c.required) continue;
      seconds[c.stage].first += c.expected_s();
      required[c.path()] = time_of(c, nodes);
    }
    for (const auto& [name, text] : required) cell(name, nodes, text);
    for (const Stage stage : stages)
      cell(fmt::format("{}: required, all", to_string(stage)), nodes,
           fmt::format("{:.1f} s, {:.0f} s", seconds[stage].first, seconds[stage].second));
  }
  std::string rules;
  for (std::size_t i = 0; i < sizes.size(); ++i) rules += "---|";
  fmt::print("| nodes | {} |\n|---|{}\n", fmt::join(sizes, " | "), rules);
  for (const std::string& name : names) {
    fmt::print("| {} |", name);
    for (const int nodes : sizes) fmt::print(" {} |", cells[name][nodes]);
    fmt::print("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  double most_s = HUGE_VAL, least_met = 0;
  bool plan_only = false;
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seconds" && i + 1 < argc)
      most_s = std::atof(argv[++i]);
    else if (word == "--met" && i + 1 < argc)
      least_met = std::atof(argv[++i]);
    else if (word == "--plan")
      plan_only = true;
    else
      numbers.push_back(std::atoi(argv[i]));
  }
  if (numbers.size() < (plan_only ? 1 : 2) || *std::min_element(numbers.begin(), numbers.end()) < 1) {
    std::fprintf(
        stderr,
        "usage: assay_network [--seconds S] [--met SHARE] RUNS NODES..., or assay_network --plan NODES...\n");
    return 4;
  }
  const int runs = numbers.front();
  bool right = true;
  try {
    if (plan_only) return print_plan(numbers), 0;
    fmt::print(
        "| nodes | most rounds | screening, s | retests: rounds | network time, s | bad nodes FAIL | healthy "
        "nodes FAIL | bad pair measured | named |\n|---|---|---|---|---|---|---|---|---|\n");
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      const Trial trial(numbers[i]);
      Outcome sum;
      double longest = 0;
      int met = 0, named = 0;
      for (int run = 0; run < runs; ++run) {
        const Outcome out = trial.run(run);
        longest = std::max(longest, out.seconds);
        sum.retest_rounds += out.retest_rounds, sum.nodes += out.nodes, sum.wrong += out.wrong;
        met += out.met ? 1 : 0, named += out.pair ? 1 : 0;
      }
      fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {} of {} | {} | {} of {} | {} |\n", numbers[i],
                 trial.rounds(), trial.screening_s(), static_cast<double>(sum.retest_rounds) / runs, longest,
                 sum.nodes, runs * bad_nodes, sum.wrong, met, runs, named);
      right = right && (std::isinf(most_s) || (longest <= most_s && sum.nodes == runs * bad_nodes &&
                                               sum.wrong == 0 && named == met && met >= least_met * runs));
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "assay_network: %s\n", e.what());
    return 3;
  }
  return right ? 0 : 1;
}
