// SPDX-License-Identifier: Apache-2.0
#include "run/session.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <random>

#include "assay/version.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "base/units.hpp"
#include "results/reader.hpp"
#include "run/fault_plan.hpp"
#include "run/injection.hpp"
#include "run/launch.hpp"
#include "run/runner.hpp"
#include "topology/inventory_tables.hpp"
#include "transport/clock_sync.hpp"
#include "verdict/verdict.hpp"

namespace assay {
namespace {

std::uint64_t random_bits() {
  std::random_device source;
  return (static_cast<std::uint64_t>(source()) << 32) ^ source();
}

/// A drawn seed can be given back as --seed, which takes signed numbers.
std::uint64_t seed_of(const Config& config) { return config.seed_given ? config.seed : random_bits() >> 1; }

/// An error that one rank met, told to all of them in its words: collective, throws on every rank when any rank failed.
/// The lowest failing rank's message wins.
void agree_error(Communicator& world, const std::string& message, ErrorKind kind) {
  const auto all = world.all_gather_text(message.empty() ? "" : fmt::format("{};{}", static_cast<int>(kind), message));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const auto split = all[rank].find(';');
    throw Error(static_cast<ErrorKind>(std::stoi(all[rank].substr(0, split))), all[rank].substr(split + 1));
  }
}

/// Runs `step` and agrees on its outcome.
template <typename Step>
void together(Communicator& world, const Step& step) {
  std::string message;
  ErrorKind kind = ErrorKind::internal;
  try {
    step();
  } catch (const Error& e) {
    message = e.what();
    kind = e.kind();
  } catch (const std::exception& e) {
    message = e.what();
  }
  agree_error(world, message, kind);
}

std::unique_ptr<Device> make_device(const Topology& topology) {
  const RankPlace& me = topology.me();
  const Node& node = topology.my_node();
  std::vector<int> cpus(me.cpus.begin(), me.cpus.end());
  cpus.resize(static_cast<std::size_t>(me.threads), cpus.empty() ? 0 : cpus.back());
  std::vector<int> numa;
  for (const int cpu : cpus) numa.push_back(node.numa_of({cpu}));
  return make_host_device(cpus, numa, !me.shares_cpus);
}

results::Writer::Start start_of(const Config& config, const Topology& topology, const Plan& plan,
                                const EntityTable& entities, const Communicator& world,
                                const std::map<std::string, std::string>& times) {
  results::Writer::Start start;
  start.info.run_id = fmt::format("{:016x}{:016x}", random_bits(), random_bits());
  start.info.started = utc_now_iso();
  start.info.command_line = config.command_line;
  start.info.assay_version = ASSAY_VERSION;
  start.info.level = to_string(config.level);
  start.info.seed = config.seed;
  start.info.plan_hash = plan.hash;
  start.info.injected = !config.faults.empty();
  start.config = config.to_json(false);
  start.config["memory_per_rank_bytes"] = plan.memory_per_rank_bytes;
  for (const Case& c : plan.cases)
    start.plan.push_back({c.suite, c.name, c.not_applicable.empty() ? "planned" : "not_applicable", c.not_applicable,
                          c.required, c.entities, c.bytes, c.expected_s(), c.deadline_s});
  start.environment = environment_rows(topology);
  for (const auto& [key, value] : times)
    start.environment.push_back({topology.nodes.front().hostname, key, value});
  for (const auto& [key, value] : mpi_versions(&world))
    start.environment.push_back({topology.nodes.front().hostname, key, value});
  for (const auto& [key, value] : blas_info())
    start.environment.push_back({topology.nodes.front().hostname, "blas." + key, value});
  start.entities = entities.rows();
  start.inventory = inventory_tables(topology, entities);
  return start;
}

/// One run from agreed topology to exit code.
class Session {
 public:
  Session(MpiSession& mpi, Config config, std::vector<std::unique_ptr<Suite>> suites, const RunHooks& hooks)
      : mpi_(mpi), config_(std::move(config)), suites_(std::move(suites)), hooks_(hooks) {}

  ExitCode run() {
    prepare();
    execute();
    return finish();
  }

 private:
  Communicator& world() { return mpi_.world(); }
  bool root() { return world().rank() == 0; }

  void prepare() {
    agree_software(world(), config_);
    config_.seed = std::stoull(world().broadcast_text(std::to_string(seed_of(config_)), 0));
    job_ = discover_job(mpi_, config_);
    plan_ = make_plan(config_, job_.topology, suites_);
    check_faults(config_.faults, plan_, job_.topology, suites_);
    agree_plan(world(), plan_.hash);
    entities_ = std::make_unique<EntityTable>(job_.topology);
    const double begin = now_s();
    // The lock on the output is taken before memory is touched: a wrong --out must not cost a minute.
    together(world(), [&] {
      if (root()) create_writer();
    });
    try {
      together(world(), [&] {
        device_ = make_device(job_.topology);
        device_->reserve(plan_.arena_bytes);
      });
    } catch (const Error&) {
      if (writer_) writer_->discard();  // nothing was measured: leave no trace
      throw;
    }
    device_s_ = now_s() - begin;
    if (root() && !config_.quiet)
      std::fprintf(stderr, "assay: %d rank%s on %zu node%s; started in %s (MPI %s, inventory %s, memory %s)\n", world().size(),
                   world().size() == 1 ? "" : "s", job_.topology.nodes.size(), job_.topology.nodes.size() == 1 ? "" : "s",
                   format_seconds(mpi_.init_seconds() + job_.probe_s + device_s_).c_str(),
                   format_seconds(mpi_.init_seconds()).c_str(), format_seconds(job_.probe_s).c_str(),
                   format_seconds(device_s_).c_str());
  }

  void create_writer() {
    const auto start = start_of(config_, job_.topology, plan_, *entities_, world(),
                                {{"init.mpi_s", fmt::format("{:.3f}", mpi_.init_seconds())},
                                 {"init.probe_s", fmt::format("{:.3f}", job_.probe_s)}});
    const std::uint64_t expected = plan_.file_bytes();
    if (config_.max_file_bytes != 0 && expected > config_.max_file_bytes)
      throw_usage(fmt::format("--max-file: the plan needs about {}, {} are allowed", format_bytes(expected),
                              format_bytes(config_.max_file_bytes)));
    writer_ = std::make_unique<results::Writer>(results::Writer::create(config_.out, start, config_.force));
  }

  void execute() {
    install_stop_signals();
    const auto offset = estimate_clock_offset(world());
    const double start_on_root = std::stod(world().broadcast_text(fmt::format("{:.9f}", now_s()), 0));
    CounterSet counters;
    const bool leader = job_.node->rank() == 0;
    if (leader) counters = CounterSet::probe(job_.topology.my_node().hostname);
    if (root())
      for (const LaunchFinding& f : job_.findings)
        writer_->add_event({0.0, f.node < 0 ? entities_->cluster() : entities_->node(f.node), f.event_kind(), f.event_text()});
    Progress progress(root() && !config_.quiet ? config_.progress : "never", plan_.budget_s);
    const double run_start_s = start_on_root - offset.offset_s;
    Injection injection({config_, job_.topology, *entities_, *device_, world(), *job_.node, job_.leaders.get(),
                         writer_.get(), run_start_s});
    Runner runner({config_, job_.topology, plan_, *entities_, *device_, injection.world(), injection.node(),
                   injection.leaders(), suites_, leader ? &counters : nullptr, writer_.get(), &progress, run_start_s,
                   injection.injector()});
    complete_ = runner.run_all();
    injection.end(complete_);
    why_ = runner.why();
  }

  ExitCode finish() {
    int code = static_cast<int>(ExitCode::inconclusive);
    together(world(), [&] {
      if (root()) code = judge_and_close();
    });
    return static_cast<ExitCode>(std::stoi(world().broadcast_text(std::to_string(code), 0)));
  }

  int judge_and_close() {
    if (!complete_) std::fprintf(stderr, "assay: ended early: %s\n", why_.c_str());
    if (!complete_) try_event("aborted", why_);
    auto results = results::load(writer_->partial());
    results.info.state = complete_ ? "complete" : "aborted";
    auto verdict = verdict::judge(results, verdict::options_from(results));
    writer_->finish(verdict, complete_ ? "complete" : "aborted");
    if (hooks_.report) hooks_.report({results, verdict, writer_->file().string()});
    return verdict.exit_code;
  }

  void try_event(const std::string& kind, const std::string& text) {
    try {
      writer_->add_event({0.0, entities_->cluster(), kind, text});
    } catch (const Error&) {
      // The disk refuses; the reason is on standard error, and the verdict is INCONCLUSIVE by what is missing.
    }
  }

  MpiSession& mpi_;
  Config config_;
  std::vector<std::unique_ptr<Suite>> suites_;
  const RunHooks& hooks_;
  Job job_;
  Plan plan_;
  std::unique_ptr<EntityTable> entities_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<results::Writer> writer_;
  double device_s_ = 0;
  bool complete_ = false;
  std::string why_;
};

/// One clear line from rank 0, the same exit code everywhere.
ExitCode report_error(Communicator& world, const Error& e) {
  if (world.rank() == 0) std::fprintf(stderr, "assay: %s\n", e.what());
  world.barrier();
  return e.exit_code();
}

}  // namespace

ExitCode run_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                     const RunHooks& hooks) {
  MpiSession mpi(argc, argv);
  try {
    Session session(mpi, std::move(config), std::move(suites), hooks);
    const ExitCode code = session.run();
    mpi.world().barrier();
    return code;
  } catch (const Error& e) {
    return report_error(mpi.world(), e);
  }
}

ExitCode plan_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                      const std::function<void(const std::string&)>& out) {
  MpiSession mpi(argc, argv);
  try {
    agree_software(mpi.world(), config);
    config.seed = std::stoull(mpi.world().broadcast_text(std::to_string(seed_of(config)), 0));
    const Job job = discover_job(mpi, config);
    const Plan plan = make_plan(config, job.topology, suites);
    check_faults(config.faults, plan, job.topology, suites);
    agree_plan(mpi.world(), plan.hash);
    if (mpi.world().rank() == 0) out(plan_text(plan, config, job.topology));
    mpi.world().barrier();
    return ExitCode::pass;
  } catch (const Error& e) {
    return report_error(mpi.world(), e);
  }
}

}  // namespace assay
