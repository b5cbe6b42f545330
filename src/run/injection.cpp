// SPDX-License-Identifier: Apache-2.0
#include "run/injection.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace assay {
namespace {

std::unique_ptr<Communicator> made_faulty(Communicator& inner, Injector& faults, int me) {
  std::vector<int> job_ranks(static_cast<std::size_t>(inner.size()));
  inner.all_gather(&me, job_ranks.data(), sizeof me);
  return std::make_unique<FaultyCommunicator>(inner, faults, std::move(job_ranks));
}

}  // namespace

Injection::Injection(const Parts& parts) : parts_(parts) {
  const auto& faults = parts.config.faults;
  if (faults.empty()) return;
  const RankPlace& me = parts.topology.me();
  injector_ = std::make_unique<Injector>(
      faults, parts.config.seed,
      Injector::Place{me.rank, parts.topology.my_node().hostname, me.node, me.local_rank,
                      parts.entities.device_of_rank(me.rank), parts.run_start_s},
      parts.device);
  world_ = made_faulty(parts.world, *injector_, me.rank);
  node_ = made_faulty(parts.node, *injector_, me.rank);
  if (parts.leaders != nullptr) leaders_ = made_faulty(*parts.leaders, *injector_, me.rank);
  for (const FaultSpec& fault : faults)
    if (fault.kind == FaultKind::diskfull && parts.writer != nullptr)
      parts.writer->inject_disk_full(fault.after_bytes);
}

void Injection::end(bool complete) {
  if (!injector_) return;
  // One line per fault; the text of a fault has no line breaks.
  std::string mine;
  for (const std::string& text : injector_->never_fired(!complete)) mine += text + "\n";
  const auto all = parts_.world.gather_text(mine, 0);
  if (parts_.writer == nullptr) return;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::size_t begin = 0, end = 0; (end = all[rank].find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const std::string text = all[rank].substr(begin, end - begin);
      try {
        parts_.writer->add_event({now_s() - parts_.run_start_s,
                                  parts_.entities.device_of_rank(static_cast<int>(rank)), "inject-unfired",
                                  fmt::format("a fault that never came about on rank {}: {}", rank, text)});
      } catch (const Error&) {
        return;  // the disk refuses, which is said elsewhere and is INCONCLUSIVE as well
      }
    }
}

}  // namespace assay
