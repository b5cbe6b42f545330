// SPDX-License-Identifier: Apache-2.0
#include "run/device_selection.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/system.hpp"
#include "topology/gpu_place.hpp"

namespace assay {

DeviceSelection select_devices(Communicator& launch, const Config& config, const std::vector<int>& members, const DeviceOffer& offer) {
  DeviceSelection selection;
  selection.visible_gpus = offer.visible_gpus;
  selection.members = members;
  const Json mine = {{"host", host_name()}, {"gpus", offer.visible_gpus}};
  const auto texts = launch.all_gather_text(mine.dump(-1, ' ', true, Json::error_handler_t::replace));
  std::vector<std::string> hosts;
  std::vector<std::vector<std::string>> visible;
  for (const int rank : members) {
    const Json told = Json::parse(texts[static_cast<std::size_t>(rank)]);
    hosts.push_back(told.at("host"));
    visible.push_back(told.at("gpus").get<std::vector<std::string>>());
  }
  const DeviceChoice choice = choose_devices(hosts, visible, {config.device, config.share_gpus, offer.cuda_built});
  selection.kind = choice.kind;
  selection.members.clear();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (choice.takes_part[i]) selection.members.push_back(members[i]);
    if (members[i] == launch.rank()) selection.gpu = choice.gpu[i];
  }
  selection.parts_of_nodes = selection.members.size() != members.size();
  for (const auto& note : choice.notes) selection.notes.push_back({note.host, {note.severity, note.kind, note.text, -1}});
  return selection;
}

std::unique_ptr<Communicator> keep_members(MpiSession& mpi, const DeviceSelection& selection) {
  const bool mine = mpi.keep(selection.members);
  if (!selection.parts_of_nodes) return mine ? mpi.split_node() : nullptr;
  const auto node = mpi.split_node();
  auto part = node->split(mine ? 0 : 1, node->rank());
  return mine ? std::move(part) : nullptr;
}

}  // namespace assay
