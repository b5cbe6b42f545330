// SPDX-License-Identifier: Apache-2.0
#include "run/session.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/system.hpp"
#include "base/units.hpp"
#include "run/agree_config.hpp"
#include "run/available_devices.hpp"
#include "run/case_counters.hpp"
#include "run/controller.hpp"
#include "run/device_selection.hpp"
#include "run/fault_plan.hpp"
#include "run/injection.hpp"
#include "run/launch.hpp"
#include "run/plan_warnings.hpp"
#include "run/report_error.hpp"
#include "run/run_file.hpp"
#include "run/runner.hpp"
#include "run/selection.hpp"
#include "run/tell_address.hpp"
#include "supervisor/supervised.hpp"
#include "transport/agree.hpp"
#include "transport/clock_sync.hpp"
#include "transport/gpu_links.hpp"

namespace assay {
namespace {

std::shared_ptr<Device> make_device(const Topology& topology, GpuLook& look) {
  const RankPlace& me = topology.me();
  if (topology.measures_gpus()) return std::move(look.device);
  const Node& node = topology.my_node();
  std::vector<int> cpus(me.cpus.begin(), me.cpus.end());
  cpus.resize(static_cast<std::size_t>(me.threads), cpus.empty() ? 0 : cpus.back());
  std::vector<int> numa;
  for (const int cpu : cpus) numa.push_back(node.numa_of({cpu}));
  return make_host_device(cpus, numa, !me.shares_cpus);
}

/// One rank's way from agreed devices to the last case. The file, the verdict and the exit code are the
/// controller's.
class Session {
 public:
  /// `devices`: who of the launch takes part, this rank among them, and with what. `node`: those of this
  /// node.
  Session(MpiSession& mpi, Config config, const std::vector<std::unique_ptr<Suite>>& suites,
          supervisor::WorkerLink& link, DeviceSelection devices, std::unique_ptr<Communicator> node)
      : mpi_(mpi),
        config_(std::move(config)),
        suites_(suites),
        link_(link),
        devices_(std::move(devices)),
        node_(std::move(node)) {}

  /// All that comes before the first case. What went wrong with the GPU of this rank is returned: the run can
  /// be set up again without it. Throws Error on all members for all else, and where there is no going on: a
  /// run that is resumed has its plan.
  std::optional<Error> set_up() {
    elapsed_s_ = agree_seed(world(), config_);
    job_ = discover_job(mpi_, config_, suites_, devices_, std::move(node_));
    Plan plan = with_memory(make_plan(config_, job_.topology, suites_));
    if (const std::int64_t cases = plan.without_products(job_.topology); cases > 0)
      job_.findings.push_back({"inconclusive", "missing",
                               fmt::format("{}: {} case{} of matrix products not measured",
                                           job_.topology.no_products, cases, cases == 1 ? " is" : "s are"),
                               -1});
    start(std::move(plan));
    if (!root()) job_.texts = {};  // only rank 0's supervisor asks for them
    auto failed = set_up_device();
    if (!job_.topology.measures_gpus() || !config_.resume.empty()) agree_error(world(), named(failed));
    return failed;
  }

  void run() {
    announce();
    for (std::uint64_t segment = 1; execute(); ++segment) prepare_segment(segment);
  }

 private:
  Communicator& world() { return mpi_.world(); }
  bool root() { return world().rank() == 0; }
  bool leads_node() const { return job_.node->rank() == 0; }

  /// Collective. Errors count from here on, before memory is touched and products are tuned; those between
  /// two segments, too.
  void enter_memory() {
    link_.enter(supervisor::Phase::memory);
    together(world(), [&] {
      if (leads_node() && !counters_) counters_.emplace(node_counters());
    });
  }

  CounterSet node_counters() const {
    const Node& node = job_.topology.my_node();
    CounterSet counters = CounterSet::probe(node.hostname);
    counters.add_gpus(node.hostname, job_.nvml, node);
    return counters;
  }

  /// Collective: `plan`, or where the system does not give out its memory in time one that needs less.
  Plan with_memory(Plan plan) {
    const double limit_s = memory_seconds(config_);
    if (std::isinf(limit_s) || config_.agreed_memory_bytes != 0 || job_.topology.measures_gpus()) return plan;
    // A wrong option must not cost that time.
    check_faults(config_.faults, plan, job_.topology, suites_);
    together(world(), [&] {
      if (root()) check_new_files(config_);
    });
    enter_memory();
    const double begin = now_s();
    std::uint64_t mine = 0;
    const auto failed = error_of([&] {
      device_ = make_device(job_.topology, devices_.look);
      mine = device_->reserve_until(plan.arena_bytes, begin + limit_s);
    });
    // What most ranks took is the measure for those that are far slower.
    if (mine >= plan.arena_bytes) link_.enter(supervisor::Phase::suites);
    agree_error(world(), named(failed));
    const auto less = agree_memory(world(), mine, plan);
    touched_s_ = now_s() - begin;
    auto limited = less ? limited_plan(config_, job_.topology, suites_, plan, *less) : std::nullopt;
    if (!limited) return plan;
    config_.agreed_memory_bytes = *less;
    job_.findings.push_back(std::move(limited->finding));
    return std::move(limited->plan);
  }

  void start(Plan plan) {
    plan_ = std::move(plan);
    check_faults(config_.faults, plan_, job_.topology, suites_);
    if (const std::string short_of = plan_.over_budget(); config_.level == Level::soak && !short_of.empty())
      throw_usage(fmt::format("{}: {}{}", config_.segments() > 1 ? "--segment" : "--duration", short_of,
                              config_.segments() > 1 ? " of a segment" : ""));
    agree_plan(world(), plan_.hash);
    entities_ = std::make_unique<EntityTable>(job_.topology);
    // The lock on the output is taken before a long level touches its memory: a wrong --out must not cost a
    // minute.
    together(world(), [&] {
      if (root()) link_.start(to_text(start_facts()));
    });
  }

  /// Collective. What went wrong with this rank's device, and nothing else, is returned.
  std::optional<Error> set_up_device() {
    enter_memory();
    const double begin = now_s();
    links_.reset();  // they know the memory that may be given up now
    auto failed = error_of([&] {
      if (!device_) device_ = make_device(job_.topology, devices_.look);
      device_->reserve(plan_.arena_bytes);
    });
    link_.enter(supervisor::Phase::suites);
    // What follows needs the memory of all of them.
    const bool all = world().max(failed ? 1.0 : 0.0) == 0;
    device_s_ = now_s() - begin;
    if (all) {
      prepare_suites();
      prepared_s_ = now_s() - begin - device_s_;
      failed = error_of([&] {
        links_ = make_gpu_links();
        device_->synchronize();
        identity_ = device_identity();
      });
    }
    device_s_ += std::exchange(touched_s_, 0.0);
    return failed;
  }

  /// For callers that do not know which device it is about.
  std::optional<Error> named(const std::optional<Error>& failed) {
    if (!failed) return {};
    return Error(failed->kind(), job_.topology.my_node().hostname +
                                     (devices_.gpu.empty() ? "" : ", GPU " + devices_.gpu) + ": " +
                                     failed->what());
  }

  void announce() {
    const auto time = [](const char* what, double s) { return what + format_seconds(s); };
    const std::size_t nodes = job_.topology.nodes.size();
    const std::string start =
        time("; started in ", mpi_.init_seconds() + job_.probe_s + device_s_ + prepared_s_) +
        time(" (MPI ", mpi_.init_seconds()) + time(", inventory ", job_.probe_s) +
        time(", memory ", device_s_) +
        (prepared_s_ < 0.1 ? "" : time(", tuning of matrix products ", prepared_s_)) + ")";
    if (root() && !config_.quiet)
      std::fprintf(stderr, "assay: %d rank%s on %zu node%s%s\n", world().size(),
                   world().size() == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s", start.c_str());
    if (root()) warn_of_plan(config_, plan_, suites_);
    const auto device = device_->identity();
    if (const auto fewer = device.find("blas_threads"); root() && fewer != device.end())
      std::fprintf(stderr, "assay: the BLAS multiplies with %s of a rank's %d threads: start more ranks\n",
                   fewer->second.c_str(), device_->threads());
    for (const auto& note : devices_.notes)
      if (root() && !config_.quiet) std::fprintf(stderr, "assay: %s\n", note.finding.text.c_str());
  }

  StartFacts start_facts() {
    StartFacts facts;
    facts.seed = config_.seed;
    facts.seed_given = config_.seed_given;
    facts.agreed_memory_bytes = config_.agreed_memory_bytes;
    facts.nodes = job_.texts.nodes, facts.places = job_.texts.places;
    facts.plan_hash = plan_.hash;
    facts.members = devices_.members;
    facts.findings = job_.findings;
    facts.environment = {{"init.mpi_s", fmt::format("{:.3f}", mpi_.init_seconds())},
                         {"init.probe_s", fmt::format("{:.3f}", job_.probe_s)}};
    for (const auto& [key, value] : mpi_versions(&world())) facts.environment.emplace_back(key, value);
    return facts;
  }

  bool execute() {
    const auto offset = estimate_clock_offset(world());
    const double start_on_root =
        std::stod(world().broadcast_text(fmt::format("{:.9f}", now_s() - elapsed_s_), 0));
    std::unique_ptr<Telemetry> telemetry;
    together(world(), [&] {
      if (leads_node() && config_.telemetry_hz > 0)
        telemetry = std::make_unique<Telemetry>(job_.topology.my_node().hostname, job_.nvml,
                                                config_.telemetry_hz, plan_.telemetry_every);
    });
    const double run_start_s = start_on_root - offset.offset_s;
    const Injection injection(
        {config_, job_.topology, *entities_, *device_, links_ ? links_->world() : world(),
         links_ ? links_->node() : *job_.node, links_ ? links_->leaders() : job_.leaders.get()},
        run_start_s);
    Runner runner({injection.environment(), plan_, suites_, counters_ ? &*counters_ : nullptr,
                   telemetry.get(), link_, run_start_s, injection.injector(), links_.get(), power_meters()});
    link_.ready(root()
                    ? to_text(ReadyFacts{start_on_root, now_s() - start_on_root, identity_ + world().path()})
                    : "");
    return runner.run_all();
  }

  /// See Context.
  std::function<std::unique_ptr<PowerMeter>(double)> power_meters() const {
    if (!leads_node()) return {};
    return [nvml = job_.nvml](double period_s) { return std::make_unique<PowerMeter>(nvml, period_s); };
  }

  /// Collective. Null where no GPU is measured.
  std::unique_ptr<GpuLinks> make_gpu_links() {
    const GpuTransports* transports = gpu_transports(device_->kind());
    if (transports == nullptr) return nullptr;
    const std::string wish =
        config_.options.has("p2p.gpu-direct") ? config_.options.text("p2p.gpu-direct") : "auto";
    const GpuDirect direct = wish == "on"    ? GpuDirect::on
                             : wish == "off" ? GpuDirect::off
                                             : GpuDirect::automatic;
    return std::make_unique<GpuLinks>(*transports, *device_, world(), *job_.node, job_.leaders.get(), direct,
                                      &link_.heartbeat());
  }

  /// The same job with another seed: other data, another order, another file.
  void prepare_segment(std::uint64_t segment) {
    link_.enter(supervisor::Phase::discovery);
    if (segment == 1) first_seed_ = config_.seed;
    config_.seed = mix64(first_seed_, segment) >> 1;
    start(make_plan(config_, job_.topology, suites_));
    agree_error(world(), named(set_up_device()));
  }

  void prepare_suites() {
    for (const auto& suite : suites_) {
      const double until = now_s() + prepare_seconds(config_.level);
      suite->prepare(plan_.cases, config_, *device_, world(), [this, until] {
        ++link_.heartbeat().iteration;
        return now_s() < until;
      });
    }
  }

  std::string device_identity() const {
    std::string out;
    for (const auto& [key, value] : device_->identity()) out += key + "=" + value + ";";
    return out;
  }

  MpiSession& mpi_;
  Config config_;
  const std::vector<std::unique_ptr<Suite>>& suites_;
  supervisor::WorkerLink& link_;
  DeviceSelection devices_;
  std::unique_ptr<Communicator> node_;  ///< until the job has it
  std::uint64_t first_seed_ = 0;        ///< of a soak
  double elapsed_s_ = 0;                ///< of the run that is resumed
  Job job_;
  std::optional<CaseCounters> counters_;  ///< of its node, on the rank that leads it
  Plan plan_;
  std::unique_ptr<EntityTable> entities_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<GpuLinks> links_;
  std::string identity_;   ///< of the device
  double touched_s_ = 0;   ///< that its memory took before there was a plan
  double device_s_ = 0;    ///< that it and its memory took to be set up
  double prepared_s_ = 0;  ///< that suites took to choose algorithms
};

/// Collective on the launch: sets the run up, without those GPUs that fail meanwhile. Null on ranks that take
/// no part.
std::unique_ptr<Session> set_up(MpiSession& mpi, const Config& config,
                                const std::vector<std::unique_ptr<Suite>>& suites,
                                supervisor::WorkerLink& link) {
  Communicator& launch = mpi.launch();
  DeviceSelector devices(mpi, config, select_ranks(launch, config), available_devices(config));
  for (;;) {
    link.enter(supervisor::Phase::discovery);
    DeviceSelection selection = devices.select();
    std::unique_ptr<Session> session;
    std::optional<Error> failed, ended;
    if (auto node = keep_members(mpi, selection)) {
      session = std::make_unique<Session>(mpi, config, suites, link, std::move(selection), std::move(node));
      try {
        failed = session->set_up();
      } catch (const Error& e) {
        ended = e;
      }
    }
    link.enter(session ? supervisor::Phase::suites : supervisor::Phase::waiting);
    if (devices.leave_out(failed, ended.has_value())) continue;
    if (ended) throw Error(*ended);
    return session;
  }
}

/// Where the file is by which supervisors find the collector.
std::string folder_of(const Config& config) {
  return std::filesystem::path(config.out).parent_path().string();
}

/// The worker of one rank, from before MPI_Init to the code it leaves with.
ExitCode work(int* argc, char*** argv, const Config& config,
              const std::vector<std::unique_ptr<Suite>>& suites, supervisor::WorkerLink& link) {
  link.enter(supervisor::Phase::mpi_init);
  MpiSession mpi(argc, argv, &link.heartbeat());
  link.enter(supervisor::Phase::discovery);
  ExitCode code = ExitCode::pass;  // of this process; that of the run is the supervisors'
  try {
    tell_address(mpi.launch(), link, folder_of(config));
    agree_software(mpi.launch(), config);
    const auto session = set_up(mpi, config, suites, link);
    release_free_memory();
    session ? session->run() : link.rest();
  } catch (const Error& e) {
    code = report_error(mpi.world(), e);
  }
  link.bye(static_cast<int>(code));
  return code;
}

}  // namespace

ExitCode run_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                     const RunHooks& hooks) {
  supervisor::SupervisorPlan plan;
  plan.folder = folder_of(config);
  plan.code_in_file = config.options.number("spent") > 0;
  plan.without_collector = fmt::format("completed cases are in {}.partial (assay recover)", config.out);
  plan.make_controller = [&] { return make_controller(config, std::move(suites), hooks); };
  plan.work = [&](supervisor::WorkerLink& link) {
    return static_cast<int>(work(argc, argv, config, suites, link));
  };
  std::vector<std::function<void(pid_t)>> clean_ups;
  for (const auto& suite : suites)
    if (auto clean_up = suite->clean_up(config)) clean_ups.push_back(std::move(clean_up));
  if (!clean_ups.empty())
    plan.clean_up = [&](pid_t worker) {
      for (const auto& clean_up : clean_ups) clean_up(worker);
    };
  for (const auto& suite : suites)
    if (auto touch = suite->touch()) plan.touch = std::move(touch);
  return static_cast<ExitCode>(supervisor::run_supervised(plan));
}

}  // namespace assay
