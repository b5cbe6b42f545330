// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "results/carry.hpp"
#include "results/resume.hpp"
#include "run/agree_config.hpp"
#include "run/available_devices.hpp"
#include "run/device_selection.hpp"
#include "run/fault_plan.hpp"
#include "run/file_start.hpp"
#include "run/launch.hpp"
#include "run/plan_warnings.hpp"
#include "run/planner.hpp"
#include "run/report_error.hpp"
#include "run/selection.hpp"
#include "run/session.hpp"
#include "topology/entities.hpp"
#include "transport/agree.hpp"

namespace assay {
namespace {

/// As `run` checks it. Throws Error(usage).
void check_resume(const Config& config, const results::Results& earlier, const results::Writer::Start& now) {
  if (config.carries_over()) return results::check_carry_over(config.resume, earlier, now);
  if (const std::string problem = results::resume_problem(results::start_of(earlier), now); !problem.empty())
    throw_usage("--resume " + config.resume + ": " + problem);
}

/// The planned cases that the run to resume has measured. Throws Error(usage) where it cannot go on.
std::string stored_text(const Config& config, const Plan& plan, const Topology& topology) {
  if (config.resume.empty()) return {};
  const auto earlier = results::load_earlier(config.resume);
  check_resume(config, earlier, start_of_file(config, plan, topology, EntityTable(topology), {}));
  std::set<std::string> stored;
  for (const auto& c : earlier.cases)
    if (results::is_final(c)) stored.insert(c.path());
  std::string text;
  std::size_t count = 0, planned = 0;
  for (const Case& c : plan.cases) {
    if (!c.not_applicable.empty()) continue;
    ++planned;
    if (!stored.contains(c.path())) continue;
    ++count;
    text += "  " + c.path() + "\n";
  }
  return fmt::format("\n{} of {} cases {} stored in {} and not measured again{}\n", count, planned,
                     count == 1 ? "is" : "are", config.resume, count > 0 ? ":" : "") +
         text;
}

}  // namespace

ExitCode plan_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                      const std::function<void(const std::string&)>& out) {
  MpiSession mpi(argc, argv);
  try {
    agree_software(mpi.world(), config);
    const DeviceSelection devices =
        DeviceSelector(mpi, config, select_ranks(mpi.launch(), config), available_devices(config)).select();
    auto node = keep_members(mpi, devices);
    if (!node) return ExitCode::pass;  // leaves MPI when the others do
    agree_seed(mpi.world(), config);
    Job job = discover_job(mpi, config, suites, devices, std::move(node));
    const double begin_s = process_cpu_s();
    if (config.options.has("as-nodes")) {
      if (!config.topology_file.empty())
        throw_usage("--as-nodes cannot be combined with --topology: simulated nodes are not in it");
      job.topology = multiplied(job.topology, config.options.integer("as-nodes"));
    }
    const Plan plan = make_plan(config, job.topology, suites);
    check_faults(config.faults, plan, job.topology, suites);
    agree_plan(mpi.world(), plan.hash);
    std::string stored;
    together(mpi.world(), [&] {
      if (mpi.world().rank() == 0) stored = stored_text(config, plan, job.topology);
    });
    if (mpi.world().rank() == 0) {
      out(plan_text(plan, config, job.topology) + job.fabric + stored);
      if (!config.quiet) std::fputs(planning_text(begin_s).c_str(), stderr);
      warn_of_plan(config, plan, suites);
      if (config.options.flag("pairs")) out("\n" + pairs_text(plan, config, job.topology, suites));
    }
    mpi.world().barrier();
    return ExitCode::pass;
  } catch (const Error& e) {
    return report_error(mpi.world(), e);
  }
}

}  // namespace assay
