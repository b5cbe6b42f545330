// SPDX-License-Identifier: Apache-2.0
// What a run costs before its first sample and around its cases when it has many nodes, and how that grows:
// the program's own discovery, plan, rows, controller and writer, on made descriptions of large nodes with 8
// ranks each. No MPI, no sockets (assay_collector_scale has those). Each size runs in a process of its own;
// times are processor time.
//   assay_scale [--ranks-only] [--limit EXPONENT] [--repeat N] [--rank-mb MB] [--file-gb GB] NODES...
// --rank-mb and --file-gb: the most memory of a rank and the largest file at the last size.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "run/controller.hpp"
#include "run/planner.hpp"
#include "topology/discover.hpp"

namespace {

using namespace assay;

constexpr int local_ranks = 8;
constexpr std::size_t samples = 100;

enum Quantity {
  discovery_s,
  plan_s,
  rows_s,
  rank_mb,
  facts_mb,
  start_s,
  store_s,
  finish_s,
  supervisor_mb,
  file_gb,
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
    {"memory of these, each rank, beyond one node", "MB"},
    {"what rank 0 tells its supervisor", "MB"},
    {"start of the supervisor's controller", "s"},
    {"a case of 100 samples a rank, to disk", "s"},
    {"verdict and end of the file", "s"},
    {"memory of the supervisor, beyond one node", "MB"},
    {"results file of standard, as planned", "GB"},
}};
using Row = std::array<double, quantities>;

double peak_mb() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1.024e-3 * static_cast<double>(used.ru_maxrss);
}

std::vector<int> range(int begin, int count, int step = 1) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(begin + i * step);
  return all;
}

/// Two sockets of 64 cores with two threads each, a cache for each eight, ten NICs, 32 DIMMs.
Node large_node() {
  constexpr int cores = 128;
  Node node;
  node.id_source = "machine-id";
  node.cpu_model = "AMD EPYC 9554 64-Core Processor", node.cpu_vendor = "AuthenticAMD";
  node.kernel = "6.1.0-18-amd64", node.kernel_cmdline = "BOOT_IMAGE=/vmlinuz root=/dev/nfs ro quiet iommu=pt";
  node.os = "Debian GNU/Linux 12 (bookworm)", node.board = "Example H13DSG", node.bios = "1.4a";
  node.sockets = 2, node.cores = cores, node.pus = 2 * cores, node.smt = true;
  for (int core = 0; core < cores; ++core) {
    node.core_pus.push_back({core, core + cores});
    node.caches.push_back({2, 1 << 20, {core, core + cores}});
  }
  for (int half = 0; half < 2; ++half) {
    auto pus = range(half * 64, 64), more = range(cores + half * 64, 64);
    pus.insert(pus.end(), more.begin(), more.end());
    node.numa.push_back({half, pus, std::uint64_t{768} << 30});
    node.socket_pus.push_back(std::move(pus));
  }
  for (int eighth = 0; eighth < cores / 8; ++eighth) {
    auto pus = range(eighth * 8, 8), more = range(cores + eighth * 8, 8);
    pus.insert(pus.end(), more.begin(), more.end());
    node.caches.push_back({3, 32 << 20, std::move(pus)});
  }
  node.memory_bytes = std::uint64_t{1536} << 30, node.memory_available_bytes = std::uint64_t{1500} << 30;
  for (int i = 0; i < 10; ++i) {
    Nic nic;
    nic.name = fmt::format("mlx5_{}:1", i), nic.kind = "infiniband", nic.id_source = "guid", nic.state = "up";
    nic.driver = "mlx5_core", nic.firmware = "28.39.1002", nic.pci = fmt::format("0000:{:02x}:00.0", 16 + i);
    nic.rate_bytes_per_s = nic.max_rate_bytes_per_s = 5e10, nic.numa = i / 5;
    node.nics.push_back(nic);
    node.pci_links.push_back({nic.pci, "network", "ConnectX-7", 32, 32, 16, 16, i / 5, {}, ""});
  }
  for (int i = 0; i < 32; ++i)
    node.dimms.push_back(
        {fmt::format("P{}-DIMM{}", i / 16, i % 16), "M321R8GA0BB0-CQKZJ", "Samsung", 51e9, 4800, 4800});
  for (int i = 0; i < 12; ++i) node.software.edit()[fmt::format("library{}", i)] = "4.1.4 (Debian 12)";
  return node;
}

Node numbered(Node node, int number) {
  node.hostname = fmt::format("node{:05}", number);
  node.id = fmt::format("{:016x}{:016x}", number, 7 * number);
  node.memory_available_bytes -= static_cast<std::uint64_t>(number) << 12;
  for (std::size_t i = 0; i < node.nics.size(); ++i)
    node.nic_ids.push_back(fmt::format("{:08x}:{:04x}", number, i));
  for (std::size_t i = 0; i < node.dimms.size(); ++i)
    node.dimm_serials.push_back(fmt::format("{:06X}{:02X}", number, i));
  return node;
}

/// What discovery gathers from the ranks of `nodes` nodes.
struct Gathered {
  std::vector<std::string> nodes, places;
};

Gathered gathered(int nodes) {
  const Node like = large_node();
  const Json first = to_json(numbered(like, 0));
  const auto description = [&](int node) {
    return node == 0 ? first.dump() : differences(to_json(numbered(like, node)), first).dump();
  };
  Gathered all;
  for (int node = 0; node < nodes; ++node)
    for (int local = 0; local < local_ranks; ++local) {
      RankFacts facts{fmt::format("node{:05}", node),
                      node * local_ranks,
                      local,
                      range(local * 16, 16),
                      1000 + local,
                      "made",
                      {}};
      auto threads = range(128 + local * 16, 16);
      facts.mask.insert(facts.mask.end(), threads.begin(), threads.end());
      facts.device = "host";
      all.places.push_back(to_text(facts));
      all.nodes.push_back(local == 0 ? description(node) : std::string());
    }
  return all;
}

Config standard(const std::vector<std::unique_ptr<Suite>>& suites, const std::string& out) {
  OptionValues values;
  std::vector<std::string> names;
  for (const OptionSpec& option : run_options()) {
    if (option.name == "level")
      values.set(option, {"standard"});
    else if (option.name == "out")
      values.set(option, {out});
    else if (option.name == "seed")
      values.set(option, {"7"});
    else if (option.name == "max-file")
      values.set(option, {"100TiB"});
    else
      values.set(option, {});
  }
  for (const auto& suite : suites) {
    for (const OptionSpec& option : suite->options()) values.set(option, {});
    if (!suite->hidden()) names.emplace_back(suite->name());
  }
  return make_config(values, names, {"selftest"});
}

double timed(const std::function<void()>& work) {
  const double begin = process_cpu_s();
  work();
  return process_cpu_s() - begin;
}

/// As each rank does it.
Row as_rank(int nodes) {
  Row row{};
  const Gathered told = gathered(nodes);
  const auto suites = make_suites();
  const Config config = standard(suites, "none.h5");
  Topology topology;
  row[discovery_s] = timed([&] { topology = discover(told.nodes, told.places, 0, 0); });
  Plan plan;
  row[plan_s] = timed([&] { plan = make_plan(config, topology, suites); });
  row[rows_s] = timed([&] { EntityTable rows(topology); });
  row[file_gb] = 1e-9 * static_cast<double>(plan.file_bytes());
  row[rank_mb] = peak_mb();
  return row;
}

std::string report_of(int rank, const EntityTable& entities) {
  CaseRecord record;
  record.declare({.name = "throughput", .unit = "FLOP/s"}).per_sample = true;
  auto& row = record.add_row(entities.device_of_rank(rank));
  for (std::size_t i = 0; i < samples; ++i) {
    row.t.push_back(1.0 + 1e-3 * static_cast<double>(i) + 1e-7 * rank);
    row.block.push_back(static_cast<int>(i / 10));
    row.values["throughput"].push_back(
        1e12 + 1e6 * static_cast<double>((i * 7919 + static_cast<std::size_t>(rank)) % 1000));
  }
  return to_text(CaseReport{record.serialize(), "[]", "", {}});
}

/// As rank 0's supervisor does it.
Row as_supervisor(int nodes, const std::string& folder) {
  Row row{};
  const auto suites = make_suites();
  const Config config = standard(suites, folder + "/run.h5");
  StartFacts facts;
  facts.seed = config.seed, facts.seed_given = true;
  std::vector<std::string> reports;
  {
    Gathered told = gathered(nodes);
    const Topology topology = discover(told.nodes, told.places, 0, 0);
    facts.plan_hash = make_plan(config, topology, suites).hash;
    facts.members = range(0, nodes * local_ranks);
    facts.nodes = std::move(told.nodes), facts.places = std::move(told.places);
    const EntityTable entities(topology);
    for (int rank = 0; rank < topology.size(); ++rank) reports.push_back(report_of(rank, entities));
  }
  std::string text = to_text(facts);
  facts = {};
  row[facts_mb] = 1e-6 * static_cast<double>(text.size());
  const RunHooks hooks;
  const auto controller = make_controller(config, make_suites(), hooks);
  row[start_s] = timed([&] { controller->start(text); });
  text = {};
  controller->ready(to_text(ReadyFacts{0, 0, "made"}));
  const int index = controller->next().case_index;
  row[store_s] = timed([&] {
    for (std::size_t rank = 0; rank < reports.size(); ++rank)
      controller->take(static_cast<int>(rank), std::exchange(reports[rank], {}));
    controller->store(index, range(0, static_cast<int>(reports.size())));
  });
  row[supervisor_mb] = peak_mb();
  row[finish_s] = timed([&] { controller->finish("", -1); });
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

Row measure(int nodes, int repeats, bool supervisor_too, const std::string& folder) {
  Row best;
  best.fill(HUGE_VAL);
  for (int i = 0; i < repeats; ++i) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const Row rank = apart([&] { return as_rank(nodes); }),
              supervisor = supervisor_too ? apart([&] { return as_supervisor(nodes, folder); }) : Row{};
    for (std::size_t q = 0; q < best.size(); ++q)
      best[q] = std::min(best[q], std::max(rank[q], supervisor[q]));
  }
  return best;
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
  double limit = 1.15, most_rank_mb = HUGE_VAL, most_file_gb = HUGE_VAL;
  int repeats = 1;
  bool supervisor = true;
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--limit" && i + 1 < argc)
      limit = std::atof(argv[++i]);
    else if (word == "--repeat" && i + 1 < argc)
      repeats = std::atoi(argv[++i]);
    else if (word == "--rank-mb" && i + 1 < argc)
      most_rank_mb = std::atof(argv[++i]);
    else if (word == "--file-gb" && i + 1 < argc)
      most_file_gb = std::atof(argv[++i]);
    else if (word == "--ranks-only")
      supervisor = false;
    else
      sizes.push_back(std::atoi(argv[i]));
  }
  if (sizes.size() < 2 || repeats < 1 || *std::min_element(sizes.begin(), sizes.end()) < 1) {
    std::fprintf(stderr,
                 "usage: assay_scale [--ranks-only] [--limit EXPONENT] [--repeat N] [--rank-mb MB] "
                 "[--file-gb GB] NODES...; two sizes or more, ascending\n");
    return 4;
  }
  const std::string folder =
      (std::filesystem::temp_directory_path() / fmt::format("assay-scale-{}", getpid())).string();
  try {
    const Row one = measure(1, 1, supervisor, folder);
    std::vector<Row> rows;
    for (const int nodes : sizes) {
      rows.push_back(measure(nodes, repeats, supervisor, folder));
      for (const Quantity memory : {rank_mb, supervisor_mb}) rows.back()[memory] -= one[memory];
    }
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
      within = within && e <= limit;
      fmt::print(" {:.2f}{} |\n", e, e <= limit ? "" : " too steep");
    }
    if (rows.back()[rank_mb] > most_rank_mb) within = false, fmt::print("more than {} MB\n", most_rank_mb);
    if (rows.back()[file_gb] > most_file_gb) within = false, fmt::print("more than {} GB\n", most_file_gb);
    return within ? 0 : 1;
  } catch (const Error& e) {
    std::filesystem::remove_all(folder);
    std::fprintf(stderr, "assay_scale: %s\n", e.what());
    return 3;
  }
}
