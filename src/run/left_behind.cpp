// SPDX-License-Identifier: Apache-2.0
#include "run/left_behind.hpp"

#include <algorithm>
#include <iterator>

#include "results/described.hpp"
#include "results/entity_tree.hpp"

namespace assay {
namespace {

/// The name of the node that a row belongs to, or nothing.
std::string node_of(const results::Results& r, std::int32_t row) {
  const auto node = results::node_above(r.entities, row);
  return node < 0 ? std::string() : r.entities[static_cast<std::size_t>(node)].name;
}

/// Behind the last event `resumed`, before which stands what earlier launches said.
auto own_events(const results::Results& r) {
  return std::find_if(r.events.rbegin(), r.events.rend(), [](const auto& e) { return e.kind == "resumed"; })
      .base();
}

results::EventRow loss_of_collector(const results::Results& r, const std::string& host) {
  results::EventRow event{0, -1, "lost",
                          "rank 0 on " + host + " is gone, and its supervisor, which collected, with it"};
  for (const auto& e : r.events) event.t = std::max(event.t, e.t);
  for (std::size_t i = 0; i < r.entities.size() && event.entity < 0; ++i)
    if (r.entities[i].kind == "device" && r.entities[i].rank == 0)
      event.entity = static_cast<std::int32_t>(i);
  return event;
}

}  // namespace

void take_losses(Attempt& a, const results::Results& r) {
  for (auto e = own_events(r); e != r.events.end(); ++e) {
    const std::string node = node_of(r, e->entity);
    const auto loss = results::loss_of(*e);
    if (loss && !loss->earlier && !node.empty()) a.lost.insert(node);
    a.unnamed = a.unnamed || (loss && !loss->earlier && node.empty() && r.cases.empty());
    a.stuck = a.stuck || e->kind == "stuck";
  }
  if (!a.lost.empty()) a.unnamed = false;  // the next launch takes over who they are
}

std::optional<results::EventRow> take_left_behind(Attempt& a, const results::Results& r,
                                                  const std::string& host, bool closing) {
  take_losses(a, r);
  a.unnamed = false;  // there is a directory to go on with
  const bool ends = closing || std::any_of(own_events(r), r.events.end(),
                                           [](const auto& e) { return e.kind == "aborted"; });
  if (ends || !a.lost.empty() || a.stuck) {
    a.told = a.told || (a.lost.empty() && !a.stuck);  // a disk that was full still is
    return std::nullopt;
  }
  a.lost = {host};
  return loss_of_collector(r, host);
}

}  // namespace assay
