// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
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

namespace assay {

ExitCode plan_session(int* argc, char*** argv, Config config, std::vector<std::unique_ptr<Suite>> suites,
                      const std::function<void(const std::string&)>& out) {
  MpiSession mpi(argc, argv);
  try {
    agree_software(mpi.world(), config);
    const DeviceSelection devices =
        DeviceSelector(mpi, config, select_ranks(mpi.launch(), config), available_devices(config)).select();
    auto node = keep_members(mpi, devices);
    if (!node) return ExitCode::pass;  // leaves MPI when the others do
    config.seed = std::stoull(mpi.world().broadcast_text(std::to_string(seed_of(config)), 0));
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
    if (mpi.world().rank() == 0) {
      out(plan_text(plan, config, job.topology) + job.fabric);
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
