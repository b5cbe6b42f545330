// SPDX-License-Identifier: Apache-2.0
#include "rehearsal.hpp"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include "base/bounds.hpp"
#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "made_cluster.hpp"
#include "results/reader.hpp"
#include "run/controller.hpp"
#include "run/planner.hpp"
#include "run/retest.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/rendezvous.hpp"
#include "supervisor/route.hpp"
#include "topology/discover.hpp"
#include "verdict/verdict.hpp"
#include "watched_controller.hpp"

namespace assay::bench {
namespace {

using namespace supervisor;

constexpr double case_s = 0.005, slower = 100;
/// Ranks of one process: their sockets must not exceed its open files.
constexpr int most_ranks_here = 4096;

std::string node_name(int node) { return fmt::format("node{:05}", node); }

/// What ranks know of the run.
struct Job {
  std::vector<std::unique_ptr<Suite>> suites = make_suites();
  Topology topology;
  Plan plan;
  std::unique_ptr<EntityTable> entities;
  Upset upset;
  std::size_t samples = 0;  ///< of each row
  std::string address;      ///< of the collector
};

/// Healthy devices differ by 0.4 %, samples of one by 1 %.
double wobble(std::uint64_t a, std::uint64_t b, double size) {
  return 1 + size * (static_cast<double>(mix64(a, b) >> 11) * 0x1p-53 - 0.5);
}

/// The other ends of a rank's links: those of the retest, or one for each row that the case has planned.
std::vector<int> partners(const Job& job, const Case& c, int rank) {
  const int device = job.entities->device_of_rank(rank);
  std::vector<int> out;
  if (c.retest) {
    for (const auto& round : c.retest->rounds)
      for (const auto& [a, b] : round)
        if (a == device && std::find(out.begin(), out.end(), b) == out.end()) out.push_back(b);
    return out;
  }
  const int ranks = job.topology.size(), nodes = ranks / local_ranks;
  const bool across = c.links.starts_with("cross");
  std::set<int> steps;  // the same for all ranks
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(1, c.entities / ranks));
  for (std::uint64_t draw = 0;
       steps.size() < std::min<std::size_t>(wanted, across ? nodes - 1 : local_ranks - 1); ++draw)
    steps.insert(1 + static_cast<int>(across ? mix64(hash_text(c.links), draw) % (nodes - 1) : draw));
  for (const int step : steps)
    out.push_back(job.entities->device_of_rank(across ? (rank + step * local_ranks) % ranks
                                                      : rank / local_ranks * local_ranks +
                                                            (rank + step) % local_ranks));
  return out;
}

/// Numbers that the pairs of a case report beside their rates.
bool is_of_a_link(const results::MetricSpec& spec) {
  return spec.name == "round" || spec.name == "repetitions" || spec.name == "message_bytes" ||
         spec.name == "payload";
}

std::string report_of(const Job& job, int rank, int number, const Order& order) {
  const auto index = static_cast<std::size_t>(number);
  const Case c = index < job.plan.cases.size()
                     ? job.plan.cases[index]
                     : retest_case(job.plan, retest_order_from(order.retest), job.topology, *job.entities);
  CaseRecord record;
  const int device = job.entities->device_of_rank(rank);
  const bool links = c.entity_kind == "link";
  if (links)
    for (const int other : partners(job, c, rank)) record.add_link(device, other);
  else if (!c.retest || c.retest->devices.empty() || std::ranges::count(c.retest->devices, device) > 0)
    record.add_row(device);
  const auto suite =
      std::find_if(job.suites.begin(), job.suites.end(), [&](const auto& s) { return s->name() == c.suite; });
  const double slow = rank / local_ranks == job.upset.slow ? slower : 1;
  for (const results::MetricSpec& spec : (*suite)->metrics()) {
    const bool of_link = links && is_of_a_link(spec);
    if (spec.operation != c.operation || (spec.role != results::Role::metric && !of_link)) continue;
    record.declare(spec);
    const std::uint64_t seed = hash_text(c.path() + spec.name);
    const double typical = spec.unit == "count" ? 0 : spec.typical > 0 ? spec.typical : 1e11;  // no errors
    const double rate =
        typical * wobble(hash_text(c.base_path()), static_cast<std::uint64_t>(rank), 0.004) / slow;
    for (std::size_t r = 0; r < record.rows_.size(); ++r) {
      auto& values = record.rows_[r].values[spec.name];
      const std::uint64_t first = (static_cast<std::uint64_t>(rank) << 8 | r) * job.samples;
      for (std::size_t i = 0; i < (spec.per_sample ? job.samples : 1); ++i)
        values.push_back(of_link ? static_cast<double>(r) : rate * wobble(seed, first + i, 0.01));
    }
  }
  for (CaseRecord::Row& row : record.rows_)
    for (std::size_t i = 0; i < job.samples; ++i) {
      row.t.push_back(1.0 + 1e-3 * static_cast<double>(i) + 1e-7 * rank);
      row.block.push_back(static_cast<int>(i / 10));
    }
  for (const std::string& checker : c.checkers) record.selftest({checker, 1, 1, 1, 1, device});
  record.wall_s_ = 0.1;
  return to_text(CaseReport{record.serialize(), "[]", "", {}});
}

/// Made ranks of whole nodes in one process: the routes of their supervisors, and what these send. Of rank 0
/// only the worker is here.
class MadeRanks {
 public:
  MadeRanks(const Job& job, int first, int count)
      : job_(job), first_(first), ranks_(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      const int rank = first + i;
      if (rank == 0) continue;
      of(rank).route = std::make_unique<Route>(
          "", Place{rank, job.topology.size(), local_ranks, node_name(rank / local_ranks)});
      of(rank).status_at_s = now_s() + status_every_s * i / count;
    }
  }
  /// Rank 0's worker: `leaves` is closed when it has said goodbye.
  void lead(int link, const std::string& start, int leaves) {
    worker_ = Stream(link), start_ = start, leaves_ = leaves;
    in_parts({MessageType::start, 0, 0, start_}, [this](const Message& part) { worker_.queue(part); });
  }

  void run() {
    bool left = false;
    while (!left) {
      const double now = now_s();
      left = serve_worker(now);
      for (int rank = std::max(first_, 1); rank < first_ + size(); ++rank) left = serve(rank, now) && left;
      // A round takes as long as it has ranks; the collector shares these cores.
      usleep(size() > 1000 && !std::exchange(moved_, false) ? 20'000 : 1000);
    }
  }

 private:
  struct Rank {
    std::unique_ptr<Route> route;
    bool ready = false, stopped = false, killed = false;
    int case_index = -1;
    double status_at_s = 0, due_s = 0, exit_at_s = 0;
    Order order;
  };
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank - first_)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  /// True when it has nothing more to do.
  bool serve(int rank, double now) {
    Rank& r = of(rank);
    if (!r.route || r.stopped) return true;
    r.route->serve(job_.address, now, [&](const Message& m) { take(rank, m, now); });
    if (r.killed) r.route.reset();
    if (!r.route) return true;
    if (r.exit_at_s > 0 || r.route->lost()) {
      if (r.route->relays_nothing() || r.route->lost() || now - r.exit_at_s > farewell_s) r.route.reset();
      return !r.route;
    }
    if (r.route->joined() && !std::exchange(r.ready, true)) r.route->send({MessageType::ready, rank, 0, ""});
    hand_in(rank, now);
    if (now < r.status_at_s) return false;
    r.status_at_s = now + status_every_s;
    Snapshot at;
    at.phase = r.case_index < 0 ? Phase::waiting : Phase::running;
    at.case_index = r.case_index, at.process_state = 'R';
    r.route->send({MessageType::status, rank, 0, to_text(at)});
    return false;
  }

  void take(int rank, const Message& m, double now) {
    Rank& r = of(rank);
    moved_ = true;
    if (m.type == MessageType::exit) {
      r.exit_at_s = now;
    } else if (m.type == MessageType::kill) {
      r.due_s = 0, r.case_index = -1;
      r.route->send({MessageType::done, rank, 3, ""});
    } else if (m.type == MessageType::trace_request) {
      r.route->send({MessageType::trace, rank, 0, "made"});
    } else if (m.type == MessageType::step && m.number < 0) {
      r.route->send({MessageType::bye, rank, 0, ""});
      r.route->send({MessageType::done, rank, 0, ""});
    } else if (m.type == MessageType::step) {
      step(rank, m, now);
    }
  }

  void step(int rank, const Message& m, double now) {
    Rank& r = of(rank);
    const int node = rank / local_ranks;
    if (m.number > 1 && node == job_.upset.silent) r.stopped = true;  // after a self-test and a case of rates
    if (m.number > 1 && node == job_.upset.killed && !r.route->relays_nothing()) {
      r.killed = true;
      return;
    }
    r.case_index = m.number;
    r.order = order_from(m.text);
    r.due_s = now + (node == job_.upset.slow ? slower : 1) * case_s;
  }

  void hand_in(int rank, double now) {
    Rank& r = of(rank);
    if (r.due_s == 0 || now < r.due_s) return;
    r.due_s = 0;
    const std::string text = report_of(job_, rank, r.case_index, r.order);
    const Message record{MessageType::record, rank, r.case_index, text};
    if (rank == 0)
      worker_.queue(record);
    else
      r.route->send(record);
  }

  bool serve_worker(double now) {
    if (!worker_.open()) return true;
    const bool alive = worker_.pump_out() && worker_.pump_in();
    while (const auto m = worker_.take()) {
      if (m->type == MessageType::started) {
        if (m->number >= 0) throw Error(ErrorKind::internal, m->text);
        worker_.queue({MessageType::ready, 0, 0, to_text(ReadyFacts{now, 0, "made"})});
      } else if (m->type == MessageType::step && m->number >= 0) {
        step(0, *m, now);
      } else if (m->type == MessageType::step) {
        worker_.queue({MessageType::bye, 0, 0, ""});
        worker_.pump_out();
        ::close(std::exchange(leaves_, -1));
      }
    }
    hand_in(0, now);
    worker_.pump_out();
    if (!alive) worker_.close();
    return !alive;
  }

  const Job& job_;
  int first_;
  std::vector<Rank> ranks_;
  Stream worker_;
  std::string start_;
  int leaves_ = -1;
  bool moved_ = false;  ///< a message came in this round
};

/// Rank 0's supervisor. Its worker is one of the made ranks; a process stands for it that ends when it has
/// left.
int lead(const Config& config, int nodes, int link, int leaves, double launched_s, const std::string& notes) {
  ChildProcess worker("a worker", [&] {
    char byte = 0;
    return ::read(leaves, &byte, 1) == 0 ? 0 : 1;
  });
  LaunchEnvironment launch;
  launch.rank = launch.local_rank = 0;
  launch.size = nodes * local_ranks;
  launch.local_size = local_ranks;
  require_open_files(launch);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, nullptr);
  SharedHeartbeat heartbeat;
  const Watch watch{worker.pid(), link, signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC), *heartbeat};
  const RunHooks hooks;
  SupervisorPlan plan;
  plan.folder = std::filesystem::path(config.out).parent_path();
  plan.make_controller = [&] {
    return std::make_unique<Watched>(make_controller(config, make_suites(), hooks), launched_s, notes);
  };
  return collector_loop(plan, launch, watch);
}

/// What rank 0 tells its supervisor, with the job that all ranks know.
std::string prepare(Job& job, const Config& config, int nodes) {
  StartFacts facts;
  facts.seed = config.seed, facts.seed_given = true;
  Gathered told = gathered(nodes);
  job.topology = discover(told.nodes, told.places, 0, 0);
  job.plan = make_plan(config, job.topology, job.suites);
  job.entities = std::make_unique<EntityTable>(job.topology);
  facts.plan_hash = job.plan.hash;
  facts.members = range(0, nodes * local_ranks);
  facts.nodes = std::move(told.nodes), facts.places = std::move(told.places);
  return to_text(facts);
}

std::string told_address(int link) {
  Stream stream(dup(link));
  const auto message = stream.wait();
  if (!message || message->type != MessageType::address)
    throw Error(ErrorKind::internal, "no address of the collector");
  return message->text;
}

/// Nodes of which a finding or the state of a part says something bad.
std::set<std::string> named_nodes(const results::VerdictData& verdict) {
  std::set<std::string> named;
  for (const results::Finding& f : verdict.findings) {
    if (f.severity != "WARN" && f.severity != "FAIL") continue;
    std::string words = f.name + " " + f.text;
    for (const auto& member : f.members) words += " " + member;
    for (auto at = words.find("node0"); at != std::string::npos; at = words.find("node0", at + 1))
      named.insert(words.substr(at, node_name(0).size()));
  }
  return named;
}

void read_notes(const std::string& notes, Rehearsed& out, double& stored_s) {
  std::ifstream in(notes);
  for (std::string word; in >> word;) {
    int rank = 0;
    std::string kind;
    if (word == "lost" && in >> rank >> kind)
      out.lost.insert(node_name(rank / local_ranks) + " " + kind);
    else if (word == "times")
      in >> out.first_sample_s >> out.gather_s >> stored_s >> out.first_cpu_s >> out.gather_cpu_s >>
          out.end_cpu_s >> out.supervisor_mb >> out.judging_mb >> out.cases;
  }
  out.gather_cpu_s /= std::max(out.cases, 1);
}

}  // namespace

Rehearsed rehearse(int nodes, const Work& work, const Upset& upset, const std::string& folder) {
  std::filesystem::create_directories(folder);
  raise_open_files();
  Job job;
  job.upset = upset;
  job.samples = work.samples;
  const Config config = made_config(job.suites, work.level, folder + "/run.h5", work.cases);
  const std::string notes = folder + "/notes";
  int link[2], leaves[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0 || pipe(leaves) != 0)
    throw Error(ErrorKind::resource, "no pipe");
  const double launched_s = now_s();
  ChildProcess leader("rank 0's supervisor", [&] {
    close(link[0]);
    close(leaves[1]);
    return lead(config, nodes, link[1], leaves[0], launched_s, notes);
  });
  close(link[1]);
  close(leaves[0]);
  job.address = told_address(link[0]);
  const std::string start = prepare(job, config, nodes);
  std::deque<ChildProcess> others;
  const int ranks = nodes * local_ranks;
  for (int first = 0; first < ranks; first += most_ranks_here)
    others.emplace_back("made ranks", [&, first] {
      MadeRanks made(job, first, std::min(most_ranks_here, ranks - first));
      if (first == 0)
        made.lead(link[0], start, leaves[1]);
      else
        close(leaves[1]);
      made.run();
      return 0;
    });
  close(link[0]);
  close(leaves[1]);
  Rehearsed out;
  out.exit_code = exit_code_of(leader.wait());
  const double exited_s = now_s();
  for (ChildProcess& child : others) child.wait_or_kill(5000);
  double stored_s = exited_s;
  read_notes(notes, out, stored_s);
  out.end_s = exited_s - stored_s;
  const auto results = results::load(config.out);
  out.file_mb = 1e-6 * static_cast<double>(std::filesystem::file_size(config.out));
  const auto verdict = verdict::judge(results, verdict::options_from(results));
  out.state = verdict.state;
  out.named = named_nodes(verdict);
  return out;
}

}  // namespace assay::bench
