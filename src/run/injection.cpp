// SPDX-License-Identifier: Apache-2.0
#include "run/injection.hpp"

namespace assay {
namespace {

std::unique_ptr<Communicator> made_faulty(Communicator& inner, Injector& faults, int me) {
  std::vector<int> job_ranks(static_cast<std::size_t>(inner.size()));
  inner.all_gather(&me, job_ranks.data(), sizeof me);
  return std::make_unique<FaultyCommunicator>(inner, faults, std::move(job_ranks));
}

}  // namespace

Injection::Injection(const RankEnvironment& given, double run_start_s) : given_(given) {
  const auto& faults = given.config.faults;
  if (faults.empty()) return;
  const RankPlace& me = given.topology.me();
  injector_ = std::make_unique<Injector>(
      faults, given.config.seed,
      Injector::Location{me.rank, given.topology.my_node().hostname, me.node, me.local_rank,
                         given.entities.device_of_rank(me.rank), run_start_s},
      given.device);
  world_ = made_faulty(given.world, *injector_, me.rank);
  node_ = made_faulty(given.node, *injector_, me.rank);
  if (given.leaders != nullptr) leaders_ = made_faulty(*given.leaders, *injector_, me.rank);
}

RankEnvironment Injection::environment() const {
  return {given_.config,
          given_.topology,
          given_.entities,
          given_.device,
          world_ ? *world_ : given_.world,
          node_ ? *node_ : given_.node,
          leaders_ ? leaders_.get() : given_.leaders};
}

}  // namespace assay
