// SPDX-License-Identifier: Apache-2.0
// What a run costs before its first sample and around its cases when it has many nodes, and how that grows,
// on made descriptions of large nodes with 8 ranks each: discovery, plan and rows of a rank (processor time),
// and a rehearsal of the run (rehearsal.hpp; wall-clock time, which includes the made ranks). Each size runs
// in a process of its own.
//   assay_scale [--ranks-only] [--gpus] [--limit EXPONENT] [--repeat N] [--plan-s S] [--rank-s S] [--rank-mb
//   MB]
//               [--kept-mb MB] [--supervisor-s S] [--supervisor-mb MB] [--file-gb GB] [--cases PATTERN]
//               [--samples N]
//               [--keep FILE] NODES...
//   assay_scale --upset NODES
// At the last size at most, of a rank: --plan-s for its plan, --rank-s for topology, plan and rows (processor
// time), --rank-mb beyond one node, --kept-mb of it when the plan is made. Of rank 0's supervisor:
// --supervisor-s for launch, one case and end (processor time), --supervisor-mb beyond one node. --file-gb:
// the file of standard. --cases and --samples: what the rehearsal runs (9 cases of products, 100 samples a
// row); --keep: its last file. --gpus: the ranks (not those of the rehearsal) have a GPU each. Fails when
// something is wrong with a node of the rehearsal.
// --upset: the relay of a node ends, another node is silent, a third is 100 times slower; fails unless these
// are named and no other.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "made_cluster.hpp"
#include "rehearsal.hpp"
#include "run/planner.hpp"
#include "topology/discover.hpp"
#include "topology/gpu_place.hpp"
#include "watched_controller.hpp"

namespace {

using namespace assay;
using namespace assay::bench;

enum Quantity {
  discovery_s,
  plan_s,
  rows_s,
  rank_mb,
  kept_mb,
  file_gb,
  first_cpu_s,
  gather_cpu_s,
  finish_cpu_s,
  supervisor_mb,
  judging_mb,
  written_mb,
  // On the clock, beside the made ranks: printed, and no failure.
  first_s,
  gather_s,
  finish_s,
  quantities
};
struct What {
  const char* name;
  const char* unit;
};
constexpr std::array<What, quantities> whats = {{
    {"topology from descriptions, each rank", "s"},
    {"plan of standard, each rank", "s"},
    {"rows of entities, each rank", "s"},
    {"memory of these at most, each rank, beyond one node", "MB"},
    {"the same, what it keeps", "MB"},
    {"results file of standard, as planned", "GB"},
    {"rank 0's supervisor, launch to first sample", "s of processor"},
    {"the same, gathering a case to disk", "s of processor"},
    {"the same, end of the last case to exit", "s of processor"},
    {"its memory until then, beyond one node", "MB"},
    {"its memory at exit, beyond one node", "MB"},
    {"results file of these cases", "MB"},
    {"launch to first sample", "s"},
    {"gathering a case", "s"},
    {"end of the last case to exit", "s"},
}};
using Row = std::array<double, quantities>;

/// The most that the sum of some quantities may be at the last size.
struct Bound {
  const char* option;
  std::vector<Quantity> sum;
  double most = HUGE_VAL;
};
std::vector<Bound> bounds() {
  return {{"--plan-s", {plan_s}},
          {"--rank-s", {discovery_s, plan_s, rows_s}},
          {"--rank-mb", {rank_mb}},
          {"--kept-mb", {kept_mb}},
          {"--file-gb", {file_gb}},
          {"--supervisor-s", {first_cpu_s, gather_cpu_s, finish_cpu_s}},
          {"--supervisor-mb", {supervisor_mb}},
          {"--supervisor-mb", {judging_mb}}};
}

/// Sets what the option bounds; false when it bounds nothing.
bool set_bound(std::vector<Bound>& all, std::string_view option, const char* most) {
  bool found = false;
  for (Bound& bound : all)
    if (option == bound.option) bound.most = std::atof(most), found = true;
  return found;
}

bool is_within(const Row& last, const std::vector<Bound>& all) {
  bool within = true;
  for (const Bound& bound : all) {
    double sum = 0;
    for (const Quantity q : bound.sum) sum += last[q];
    if (sum <= bound.most) continue;
    within = false;
    fmt::print("{:.3g} is more than {} {}\n", sum, bound.option, bound.most);
  }
  return within;
}

double timed(const std::function<void()>& work) {
  const double begin = process_cpu_s();
  work();
  return process_cpu_s() - begin;
}

/// What a rank keeps of the devices of all until it has its own.
struct Devices {
  std::vector<std::string> hosts;
  std::vector<VisibleGpus> visible;
  DeviceChoice choice;

  explicit Devices(int nodes) {
    for (const OfferedDevices& one : offered_devices(offered(nodes), range(0, nodes * local_ranks))) {
      hosts.push_back(one.host);
      visible.push_back(one.available.front().gpus);
    }
    choice = choose_devices(hosts, visible, {"auto", false, "cuda"});
  }
};

/// As each rank does it.
Row as_rank(int nodes, bool gpus) {
  Row row{};
  Gathered told = gathered(nodes, gpus);
  const auto suites = make_suites();
  const Config config = made_config(suites, "standard", "none.h5");
  std::optional<Devices> devices;
  Topology topology;
  if (gpus) devices.emplace(nodes);
  row[discovery_s] = timed([&] { topology = discover(told.nodes, told.places, 0, 0); });
  Plan plan;
  row[plan_s] = timed([&] { plan = make_plan(config, topology, suites); });
  std::unique_ptr<EntityTable> rows;
  row[rows_s] = timed([&] { rows = std::make_unique<EntityTable>(topology); });
  row[file_gb] = 1e-9 * static_cast<double>(plan.file_bytes());
  row[rank_mb] = peak_mb();
  told = {}, devices.reset();
  release_free_memory();
  row[kept_mb] = used_mb();
  return row;
}

/// As rank 0's supervisor does it, from the launch to its exit.
Row as_supervisor(int nodes, const Work& work, const std::string& folder) {
  const Rehearsed run = rehearse(nodes, work, {}, folder);
  const bool healthy =
      run.lost.empty() && run.named.empty() && run.state != "FAIL" && run.state != "INCONCLUSIVE";
  if (run.cases == 0 || run.exit_code != 0 || !healthy)
    throw Error(
        ErrorKind::internal,
        fmt::format("the rehearsal of {} healthy nodes ended {} with exit code {} after {} cases; lost: "
                    "{}; named: {}; {}",
                    nodes, run.state, run.exit_code, run.cases, fmt::join(run.lost, ", "),
                    fmt::join(run.named, " "), fmt::join(run.reasons, "; ")));
  Row row{};
  row[first_cpu_s] = run.first_cpu_s, row[gather_cpu_s] = run.gather_cpu_s, row[finish_cpu_s] = run.end_cpu_s;
  row[first_s] = run.first_sample_s, row[gather_s] = run.gather_s, row[finish_s] = run.end_s;
  row[supervisor_mb] = run.supervisor_mb, row[judging_mb] = run.judging_mb, row[written_mb] = run.file_mb;
  return row;
}

/// `work` in a process of its own, so that its peak of memory is its own.
Row apart(const std::function<Row()>& work) {
  int line[2];
  Row row{};
  if (pipe(line) != 0) throw Error(ErrorKind::resource, "no pipe");
  ChildProcess child("a measuring process", [&] {
    row = work();
    return write(line[1], row.data(), sizeof row) == static_cast<ssize_t>(sizeof row) ? 0 : 1;
  });
  close(line[1]);
  const bool whole = read(line[0], row.data(), sizeof row) == static_cast<ssize_t>(sizeof row);
  close(line[0]);
  child.wait();
  if (!whole) throw Error(ErrorKind::internal, "a size did not end");
  return row;
}

/// Without `work` only what a rank does.
Row measure(int nodes, bool gpus, int repeats, const Work* work, const std::string& folder) {
  Row best;
  best.fill(HUGE_VAL);
  for (int i = 0; i < repeats; ++i) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const Row rank = apart([&] { return as_rank(nodes, gpus); }),
              supervisor =
                  work == nullptr ? Row{} : apart([&] { return as_supervisor(nodes, *work, folder); });
    for (std::size_t q = 0; q < best.size(); ++q)
      best[q] = std::min(best[q], std::max(rank[q], supervisor[q]));
  }
  return best;
}

/// Whether the nodes that something happens to are named, and no other.
bool names_the_right_nodes(int nodes, const std::string& folder) {
  const Upset upset{nodes / 8, nodes / 4, nodes / 2};
  const Rehearsed run = rehearse(nodes, {"smoke", "gemm/fp32-n*"}, upset, folder);
  const std::set<std::string> lost = {node_name(upset.killed) + " lost", node_name(upset.silent) + " lost"},
                              named = {node_name(upset.killed), node_name(upset.silent),
                                       node_name(upset.slow)};
  fmt::print("relay of {} ended, {} silent, {} slower: {}; named: {}; {}, exit code {}, {} cases\n",
             node_name(upset.killed), node_name(upset.silent), node_name(upset.slow),
             fmt::join(run.lost, ", "), fmt::join(run.named, " "), run.state, run.exit_code, run.cases);
  return run.lost == lost && run.named == named;
}

/// Slope of the line through (log x, log y).
double exponent(const std::vector<double>& x, const std::vector<double>& y) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  const auto n = static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = std::log(x[i]), b = std::log(std::max(y[i], 1e-9));
    sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace

int main(int argc, char** argv) {
  double limit = 1.15;
  std::vector<Bound> most = bounds();
  int repeats = 1;
  bool supervisor = true, upset = false, gpus = false;
  const Work usual{"standard", "gemm/fp32-n*-together*"};
  Work work = usual;
  std::string keep;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--limit" && i + 1 < argc)
      limit = std::atof(argv[++i]);
    else if (word == "--repeat" && i + 1 < argc)
      repeats = std::atoi(argv[++i]);
    else if (i + 1 < argc && set_bound(most, word, argv[i + 1]))
      ++i;
    else if (word == "--cases" && i + 1 < argc)
      work.cases = argv[++i];
    else if (word == "--samples" && i + 1 < argc)
      work.samples = static_cast<std::size_t>(std::max(1, std::atoi(argv[++i])));
    else if (word == "--keep" && i + 1 < argc)
      keep = argv[++i];
    else if (word == "--ranks-only")
      supervisor = false;
    else if (word == "--gpus")
      gpus = true;
    else if (word == "--upset")
      upset = true;
    else
      sizes.push_back(std::atoi(argv[i]));
  }
  if (sizes.size() < (upset ? 1 : 2) || repeats < 1 || *std::min_element(sizes.begin(), sizes.end()) < 1) {
    std::fprintf(stderr,
                 "usage: assay_scale [--ranks-only] [--gpus] [--limit EXPONENT] [--repeat N] [--plan-s S] "
                 "[--rank-s S] "
                 "[--rank-mb MB] [--kept-mb MB] [--supervisor-s S] [--supervisor-mb MB] [--file-gb GB] "
                 "[--cases PATTERN] "
                 "[--samples N] [--keep FILE] NODES...; two sizes or more, ascending\n"
                 "       assay_scale --upset NODES\n");
    return 4;
  }
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("assay-scale-{}", getpid())).string();
  try {
    if (upset) {
      const bool right = names_the_right_nodes(sizes.front(), folder);
      std::filesystem::remove_all(folder);
      return right ? 0 : 1;
    }
    const Work* const rehearsed = supervisor ? &work : nullptr;
    const Row one =
        measure(1, gpus, 1, supervisor ? &usual : nullptr, folder);  // which has no pairs of nodes
    std::vector<Row> rows;
    for (const int nodes : sizes) {
      rows.push_back(measure(nodes, gpus, repeats, rehearsed, folder));
      for (const Quantity memory : {rank_mb, kept_mb, supervisor_mb, judging_mb})
        rows.back()[memory] -= one[memory];
    }
    if (!keep.empty())
      std::filesystem::copy_file(folder + "/run.h5", keep, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::remove_all(folder);
    fmt::print("| nodes of {} ranks |", local_ranks);
    for (const int nodes : sizes) fmt::print(" {} |", nodes);
    fmt::print(" exponent |\n|");
    for (std::size_t i = 0; i < sizes.size() + 2; ++i) fmt::print("---|");
    fmt::print("\n");
    bool within = true;
    const std::size_t from = sizes.size() == 2 ? 0 : sizes.size() / 2;
    for (std::size_t q = 0; q < quantities; ++q) {
      if (rows.back()[q] <= 0) continue;  // of the supervisor that was left out
      fmt::print("| {}, {} |", whats[q].name, whats[q].unit);
      std::vector<double> x, y;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        fmt::print(" {:.3g} |", rows[i][q]);
        if (i >= from) x.push_back(sizes[i]), y.push_back(rows[i][q]);
      }
      const double e = exponent(x, y);
      const bool judged = q < first_s;
      within = within && (!judged || e <= limit);
      fmt::print(" {:.2f}{} |\n", e, judged && e > limit ? " too steep" : "");
    }
    return is_within(rows.back(), most) && within ? 0 : 1;
  } catch (const Error& e) {
    std::filesystem::remove_all(folder);
    std::fprintf(stderr, "assay_scale: %s\n", e.what());
    return 3;
  }
}
