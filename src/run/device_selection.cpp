// SPDX-License-Identifier: Apache-2.0
#include "run/device_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/system.hpp"
#include "topology/discover.hpp"
#include "transport/agree.hpp"

namespace assay {

namespace {

/// Cores that a rank needs of its node's CPU quota at level smoke: with less, its start alone takes the
/// budget of all.
constexpr double least_cores = 0.1;

/// Empty, or 'r' or 'd' for what is short or wrong, and the words.
std::string text_of(const std::optional<Error>& error) {
  return error ? (error->kind() == ErrorKind::resource ? "r" : "d") + std::string(error->what()) : "";
}

template <class Unwanted>
void drop(VisibleGpus& gpus, const Unwanted& unwanted) {
  if (std::ranges::any_of(gpus.get(), unwanted)) std::erase_if(gpus.edit(), unwanted);
}

}  // namespace

DeviceSelector::DeviceSelector(MpiSession& mpi, const Config& config, std::vector<int> members,
                               std::vector<AvailableDevices> available)
    : launch_(mpi.launch()), config_(config), members_(std::move(members)), asked_(members_.size()) {
  OfferedDevices own{host_name(), own_quota_cores(), {}};
  for (const AvailableDevices& devices : available)
    own.available.push_back(
        {devices.visible_gpus, devices.lost_gpus, has_gpu_on_bus("/sys", devices.pci_vendor)});
  own.leader = std::stoi(mpi.split_node()->broadcast_text(std::to_string(launch_.rank()), 0));
  const auto offered = offered_devices(launch_.all_gather_text(to_text(own)), members_);
  std::vector<std::vector<bool>> seen;
  for (const OfferedDevices& one : offered) {
    seen.emplace_back();
    for (const auto& devices : one.available)
      seen.back().push_back(!devices.gpus.empty() || !devices.lost.empty());
  }
  const std::size_t agreed = agreed_backend(seen);
  if (!available.empty()) devices_ = std::move(available[agreed]);
  hosts_ = distinct_hosts(offered);
  std::set<std::string> said;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    visible_.emplace_back();
    if (offered[i].available.empty()) continue;
    const auto& devices = offered[i].available.at(agreed);
    visible_.back() = devices.gpus;
    if (devices.on_bus) on_bus_.insert(hosts_[i]);
    for (const std::string& text : devices.lost)
      if (said.insert(hosts_[i] + text).second) note(hosts_[i], "fail", "missing", text);
  }
  if (config.level == Level::smoke) leave_out_starved(offered);
}

/// Not all of them: then there is no other node whose time they take.
void DeviceSelector::leave_out_starved(const std::vector<OfferedDevices>& offered) {
  std::map<std::string, double> cores;  // by host, of each rank
  for (std::size_t i = 0; i < offered.size(); ++i)
    if (!std::isnan(offered[i].quota_cores)) cores[hosts_[i]] = offered[i].quota_cores;
  std::map<std::string, double> ranks;
  for (const std::string& host : hosts_) ++ranks[host];
  for (auto& [host, share] : cores) share /= ranks[host];
  std::erase_if(cores, [](const auto& host) { return host.second >= least_cores; });
  if (cores.size() == ranks.size()) return;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (cores.contains(hosts_[i])) visible_[i] = {};
  for (const auto& [host, share] : cores)
    note(host, "inconclusive", "quota",
         fmt::format("the cgroup's CPU quota is {:.4g} of a core for each rank, not measured at level smoke",
                     share));
}

void DeviceSelector::note(const std::string& host, const std::string& severity, const std::string& kind,
                          const std::string& what) {
  notes_.push_back({host, {severity, kind, host + ": " + what + "; the run continues without it", -1}});
}

/// A node that has too little quota, or all of whose GPUs turned out to be of no use, is not measured with
/// its CPUs instead.
void DeviceSelector::drop_hosts_without() {
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

void DeviceSelector::choose() {
  drop_hosts_without();
  if (members_.empty()) throw Error(ErrorKind::device, "no GPU can be used: " + notes_.front().finding.text);
  choice_ = choose_devices(hosts_, visible_, {config_.device, config_.share_gpus, devices_.backend}, on_bus_);
}

/// At the GPU that was chosen for this rank. One that it leaves is released before another rank opens it.
std::optional<Error> DeviceSelector::look() {
  std::string gpu;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i] == launch_.rank()) gpu = choice_.gpu[i];
  if (std::exchange(gpu_, gpu) == gpu) return {};
  look_ = {};
  if (gpu.empty() || !devices_.look) return {};
  return error_of([&] { look_ = devices_.look(gpu); });
}

/// A library that is missing on all nodes leaves products out of the plan; where others have it, the GPUs
/// without it are in trouble.
std::vector<std::string> DeviceSelector::troubles_of_products() {
  auto told = launch_.all_gather_text(look_.no_products);
  const auto lacks = [&](int rank) { return !told[static_cast<std::size_t>(rank)].empty(); };
  const bool all = std::all_of(members_.begin(), members_.end(), lacks);
  for (std::string& text : told)
    if (!text.empty()) text = all ? "" : "d" + text;
  return told;
}

/// `troubles` by rank of the launch, empty: none.
bool DeviceSelector::leave_out(const std::vector<std::string>& troubles) {
  const auto trouble = [&](std::size_t i) -> const std::string& {
    return troubles[static_cast<std::size_t>(members_[i])];
  };
  if (std::ranges::all_of(members_,
                          [&](int rank) { return troubles[static_cast<std::size_t>(rank)].empty(); }))
    return false;
  std::set<std::pair<std::string, std::string>> sick, working;  // host, GPU
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (trouble(i).empty()) {
      working.insert({hosts_[i], choice_.gpu[i]});
    } else if (sick.insert({hosts_[i], choice_.gpu[i]}).second) {
      // A GPU in use by another process, or without code in this build, is no fault of the node; it is not
      // covered.
      const bool healthy = trouble(i).front() == 'r';
      note(hosts_[i], healthy ? "warn" : "fail", healthy ? "uncovered" : "missing",
           "the GPU " + choice_.gpu[i] + " cannot be used (" + trouble(i).substr(1) + ")");
    }
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const auto of_host = [&](const auto& gpus) {
      return [&](const std::string& gpu) { return gpus.contains({hosts_[i], gpu}); };
    };
    // A rank with a working GPU keeps it: in exclusive mode it has no second process.
    if (trouble(i).empty() && !choice_.gpu[i].empty()) visible_[i] = {choice_.gpu[i]};
    drop(visible_[i], of_host(sick));
    if (trouble(i).empty()) continue;
    if (!config_.share_gpus) drop(visible_[i], of_host(working));
    // A runtime goes on failing in a process that has met an error of a GPU: another one would be named for
    // it.
    if (trouble(i).front() == 'd') visible_[i] = {};
  }
  return true;
}

bool DeviceSelector::leave_out(const std::optional<Error>& failed, bool ended) {
  const auto told = launch_.all_gather_text(ended ? "ended" : text_of(failed));
  return std::find(told.begin(), told.end(), "ended") == told.end() && leave_out(told);
}

DeviceSelection DeviceSelector::select() {
  do choose();
  while (choice_.on_gpus() &&
         (leave_out(launch_.all_gather_text(text_of(look()))) || leave_out(troubles_of_products())));
  DeviceSelection selection;
  selection.visible_gpus = devices_.visible_gpus;
  selection.kind = choice_.kind;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (choice_.takes_part[i]) selection.members.push_back(members_[i]);
    if (members_[i] != launch_.rank()) continue;
    selection.host = hosts_[i];
    selection.gpu = choice_.gpu[i];
  }
  if (!selection.gpu.empty()) selection.look = look_;
  selection.parts_of_nodes = selection.members.size() != asked_;
  selection.notes = notes_;
  for (const auto& note : choice_.notes)
    selection.notes.push_back({note.host, {note.severity, note.kind, note.text, -1}});
  return selection;
}

std::unique_ptr<Communicator> keep_members(MpiSession& mpi, const DeviceSelection& selection) {
  const bool mine = mpi.keep(selection.members);
  auto node = mpi.split_node();
  if (selection.parts_of_nodes) node = node->split(mine ? 0 : 1, node->rank());
  return mine ? std::move(node) : nullptr;
}

}  // namespace assay
