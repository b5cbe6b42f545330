// SPDX-License-Identifier: Apache-2.0
#include "run/device_selection.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/system.hpp"
#include "topology/gpu_place.hpp"

namespace assay {

namespace {

/// A GPU that whoever got it could not use.
struct Sick {
  std::string host, gpu;
};

/// What the ranks of a launch told of themselves, and which GPUs have turned out to be of no use.
class Offers {
 public:
  Offers(Communicator& launch, const std::vector<int>& members, const DeviceOffer& mine) : launch_(launch), members_(members) {
    const Json told = {{"host", host_name()}, {"gpus", mine.visible_gpus}, {"lost", mine.lost_gpus}};
    const auto texts = launch.all_gather_text(told.dump(-1, ' ', true, Json::error_handler_t::replace));
    std::set<std::string> said;
    for (const int rank : members) {
      const Json one = Json::parse(texts[static_cast<std::size_t>(rank)]);
      hosts_.push_back(one.at("host"));
      visible_.push_back(one.at("gpus").get<std::vector<std::string>>());
      for (const std::string text : one.at("lost"))
        if (said.insert(hosts_.back() + text).second) note(hosts_.back(), "fail", "missing", text);
    }
  }

  /// Chooses among what is left; empty members when nothing is.
  DeviceChoice choose(const Config& config, bool cuda_built) {
    drop_hosts_without();
    if (members_.empty()) return {};
    return choose_devices(hosts_, visible_, {config.device, config.share_gpus, cuda_built});
  }

  /// Collective: everybody looks at what it got. True when all of it can be used.
  bool look(const DeviceChoice& choice, const DeviceOffer& mine, GpuLook& look) {
    std::string told;
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (members_[i] == launch_.rank() && !choice.gpu[i].empty() && mine.look) told = trouble_of(mine, choice.gpu[i], look);
    const auto texts = launch_.all_gather_text(told);
    std::vector<Sick> sick;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::string& text = texts[static_cast<std::size_t>(members_[i])];
      if (text.empty()) continue;
      // In use by somebody else is no fault of the node; it is not covered.
      const bool in_use = text.front() == 'r';
      note(hosts_[i], in_use ? "warn" : "fail", in_use ? "uncovered" : "missing",
           "the GPU " + choice.gpu[i] + " cannot be used (" + text.substr(1) + ")");
      sick.push_back({hosts_[i], choice.gpu[i]});
    }
    for (const Sick& s : sick)
      for (std::size_t i = 0; i < members_.size(); ++i)
        if (hosts_[i] == s.host) std::erase(visible_[i], s.gpu);
    return sick.empty();
  }

  const std::vector<int>& members() const noexcept { return members_; }
  const std::vector<DeviceSelection::Note>& notes() const noexcept { return notes_; }

 private:
  /// Empty when the GPU can be used; else 'r' or 'd' for what is short or wrong, and the words.
  std::string trouble_of(const DeviceOffer& mine, const std::string& gpu, GpuLook& look) {
    if (looked_ == gpu) return "";
    looked_ = gpu;
    try {
      look = mine.look(gpu);
      return "";
    } catch (const Error& e) {
      return (e.kind() == ErrorKind::resource ? "r" : "d") + std::string(e.what());
    } catch (const std::exception& e) {
      return "d" + std::string(e.what());
    }
  }

  /// A node all of whose GPUs turned out to be of no use is not measured with its CPUs instead.
  void drop_hosts_without() {
    std::set<std::string> bad, good;
    for (const auto& n : notes_) bad.insert(n.host);
    for (std::size_t i = 0; i < members_.size(); ++i)
      if (!visible_[i].empty()) good.insert(hosts_[i]);
    for (std::size_t i = members_.size(); i-- > 0;) {
      if (!bad.contains(hosts_[i]) || good.contains(hosts_[i])) continue;
      const auto at = static_cast<std::ptrdiff_t>(i);
      members_.erase(members_.begin() + at);
      hosts_.erase(hosts_.begin() + at);
      visible_.erase(visible_.begin() + at);
    }
  }

  void note(const std::string& host, const std::string& severity, const std::string& kind, const std::string& what) {
    notes_.push_back({host, {severity, kind, host + ": " + what + "; the run goes on without it", -1}});
  }

  Communicator& launch_;
  std::vector<int> members_;
  std::vector<std::string> hosts_;
  std::vector<std::vector<std::string>> visible_;
  std::vector<DeviceSelection::Note> notes_;
  std::string looked_;
};

}  // namespace

DeviceSelection select_devices(Communicator& launch, const Config& config, const std::vector<int>& members, const DeviceOffer& offer) {
  DeviceSelection selection;
  selection.visible_gpus = offer.visible_gpus;
  Offers offers(launch, members, offer);
  DeviceChoice choice;
  do {
    choice = offers.choose(config, offer.cuda_built);
    if (offers.members().empty()) throw Error(ErrorKind::device, "no GPU can be used: " + offers.notes().front().finding.text);
  } while (choice.kind == "cuda" && !offers.look(choice, offer, selection.look));
  selection.kind = choice.kind;
  for (std::size_t i = 0; i < offers.members().size(); ++i) {
    if (choice.takes_part[i]) selection.members.push_back(offers.members()[i]);
    if (offers.members()[i] == launch.rank()) selection.gpu = choice.gpu[i];
  }
  if (selection.gpu.empty()) selection.look = {};
  selection.parts_of_nodes = selection.members.size() != members.size();
  selection.notes = offers.notes();
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
