// SPDX-License-Identifier: Apache-2.0
#include "rehearsal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <regex>

#include "base/bounds.hpp"
#include "base/child_process.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "made_ranks.hpp"
#include "results/reader.hpp"
#include "run/controller.hpp"
#include "run/planner.hpp"
#include "supervisor/loops.hpp"
#include "supervisor/rendezvous.hpp"
#include "topology/discover.hpp"
#include "verdict/verdict.hpp"
#include "watched_controller.hpp"

namespace assay::bench {
namespace {

using namespace supervisor;

/// Ranks of one process: their sockets must not exceed its open files.
constexpr int most_ranks_here = 4096;

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
    static const std::regex node("node[0-9]{5}");
    for (std::sregex_iterator at(words.begin(), words.end(), node); at != std::sregex_iterator(); ++at)
      named.insert(at->str());
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
  int link[2], leaves[2], came[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0 || pipe(leaves) != 0 ||
      pipe2(came, O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(ErrorKind::resource, "no pipe");
  const double launched_s = now_s();
  ChildProcess leader("rank 0's supervisor", [&] {
    close(link[0]);
    close(leaves[1]);
    close(came[1]);
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
      MadeRanks made(job, first, std::min(most_ranks_here, ranks - first), came[1]);
      if (first == 0)
        made.lead(link[0], start, leaves[1], came[0]);
      else
        close(leaves[1]);
      made.run();
      return 0;
    });
  close(link[0]);
  close(leaves[1]);
  close(came[1]);
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
  out.reasons = verdict.reasons;
  out.named = named_nodes(verdict);
  return out;
}

}  // namespace assay::bench
