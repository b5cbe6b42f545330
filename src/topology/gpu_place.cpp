// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_place.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/system.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {

std::string counted(std::size_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= most ? text : text + " and " + std::to_string(names.size() - most) + " more";
}

using Visible = std::vector<std::vector<std::string>>;  ///< of the ranks of a host

/// The ranks of each host, hosts in the order of their lowest rank.
std::vector<std::pair<std::string, std::vector<int>>> by_host(const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  std::map<std::string, std::size_t> at;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [found, fresh] = at.emplace(hosts[rank], groups.size());
    if (fresh) groups.push_back({hosts[rank], {}});
    groups[found->second].second.push_back(static_cast<int>(rank));
  }
  return groups;
}

void place_host(DeviceChoice& choice, const std::string& host, const std::vector<int>& ranks,
                const std::vector<VisibleGpus>& visible, bool share) {
  Visible seen;
  std::set<std::string> all;
  for (const int rank : ranks) {
    seen.push_back(visible[static_cast<std::size_t>(rank)]);
    all.insert(seen.back().begin(), seen.back().end());
  }
  const auto placed = place_on_gpus(seen, share);
  std::vector<int> idle;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]);
    choice.gpu[rank] = placed[i];
    choice.takes_part[rank] = !placed[i].empty();
    if (placed[i].empty()) idle.push_back(ranks[i]);
  }
  if (idle.empty()) return;
  std::string text = host + ": " + counted(ranks.size(), "rank") + " for " + counted(all.size(), "GPU") +
                     ": rank" + (idle.size() == 1 ? " " : "s ") + format_cpu_list(idle) +
                     (idle.size() == 1 ? " has none" : " have none");
  if (!share) text += " (--share-gpus allows ranks to share GPUs)";
  choice.notes.push_back({host, "info", "idle", text});
}

}  // namespace

std::string to_text(const OfferedDevices& offered) {
  Json told = {{"host", offered.host},
               {"available", Json::array()},
               {"quota", offered.quota_cores},
               {"leader", offered.leader}};
  for (const auto& devices : offered.available)
    told["available"].push_back(
        {{"gpus", devices.gpus.get()}, {"lost", devices.lost}, {"on_bus", devices.on_bus}});
  return told.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<OfferedDevices> offered_devices(const std::vector<std::string>& texts,
                                            const std::vector<int>& of) {
  const auto less = [](const VisibleGpus& a, const VisibleGpus& b) { return a.get() < b.get(); };
  std::set<VisibleGpus, decltype(less)> known(less);
  std::vector<OfferedDevices> all;
  all.reserve(of.size());
  for (const int rank : of) {
    const Json told = Json::parse(texts[static_cast<std::size_t>(rank)]);
    const Json& quota = told.at("quota");
    OfferedDevices& offered = all.emplace_back();
    offered.host = told.at("host");
    offered.quota_cores = quota.is_number() ? quota.get<double>() : unsupported;
    offered.leader = told.at("leader");
    for (const Json& devices : told.at("available")) {
      VisibleGpus gpus = devices.at("gpus").get<std::vector<std::string>>();
      offered.available.push_back(
          {*known.insert(std::move(gpus)).first, devices.at("lost"), devices.at("on_bus")});
    }
  }
  return all;
}

std::vector<std::string> distinct_hosts(const std::vector<OfferedDevices>& offered) {
  struct Known {
    int leader = 0;
    std::set<std::string> gpus;
  };
  std::map<std::string, std::vector<Known>> nodes;  // by host
  std::vector<std::string> hosts;
  hosts.reserve(offered.size());
  for (const OfferedDevices& one : offered) {
    std::vector<Known>& known = nodes[one.host];
    // An MPI library may give each rank of a node a leader of its own. It sees the GPUs of the others.
    const auto sees = [&](const Known& node) {
      return std::ranges::any_of(one.available, [&](const auto& devices) {
        return std::ranges::any_of(devices.gpus.get(),
                                   [&](const std::string& gpu) { return node.gpus.contains(gpu); });
      });
    };
    auto at = std::ranges::find(known, one.leader, &Known::leader);
    if (at == known.end()) at = std::ranges::find_if(known, sees);
    if (at == known.end()) at = known.insert(at, {one.leader, {}});
    for (const auto& devices : one.available)
      at->gpus.insert(devices.gpus.get().begin(), devices.gpus.get().end());
    const auto number = at - known.begin();
    hosts.push_back(number == 0 ? one.host : one.host + "~" + std::to_string(number + 1));
  }
  return hosts;
}

std::vector<std::string> place_on_gpus(const Visible& visible, bool share) {
  std::vector<std::string> placed(visible.size());
  std::map<std::string, int> load;
  const auto give = [&](std::size_t rank, const std::string& gpu) {
    placed[rank] = gpu;
    ++load[gpu];
  };
  for (std::size_t rank = 0; rank < visible.size(); ++rank)
    if (visible[rank].size() == 1 && load[visible[rank].front()] == 0) give(rank, visible[rank].front());
  for (std::size_t rank = 0; rank < visible.size(); ++rank) {
    if (!placed[rank].empty()) continue;
    const auto free = std::find_if(visible[rank].begin(), visible[rank].end(),
                                   [&](const std::string& gpu) { return load[gpu] == 0; });
    if (free != visible[rank].end()) give(rank, *free);
  }
  if (!share) return placed;
  for (std::size_t rank = 0; rank < visible.size(); ++rank) {
    if (!placed[rank].empty() || visible[rank].empty()) continue;
    give(rank,
         *std::min_element(visible[rank].begin(), visible[rank].end(),
                           [&](const std::string& a, const std::string& b) { return load[a] < load[b]; }));
  }
  return placed;
}

std::size_t agreed_backend(const std::vector<std::vector<bool>>& seen) {
  for (std::size_t backend = 0; !seen.empty() && backend < seen.front().size(); ++backend)
    for (const auto& of_rank : seen)
      if (of_rank[backend]) return backend;
  return 0;
}

DeviceChoice choose_devices(const std::vector<std::string>& hosts, const std::vector<VisibleGpus>& visible,
                            const DeviceWish& wish, const std::set<std::string>& on_bus) {
  DeviceChoice choice;
  choice.gpu.resize(hosts.size());
  choice.takes_part.assign(hosts.size(), true);
  if (wish.device == "host") return choice;
  const bool required = wish.device != "auto";
  if (wish.backend.empty()) {
    if (required)
      throw_usage("--device: " + wish.device + " is not built into this assay (see 'assay list')");
    return choice;
  }
  const auto groups = by_host(hosts);
  std::vector<std::string> without;
  for (const auto& [host, ranks] : groups)
    if (std::all_of(ranks.begin(), ranks.end(),
                    [&](int rank) { return visible[static_cast<std::size_t>(rank)].empty(); }))
      without.push_back(host);
  const std::size_t with = groups.size() - without.size();
  if (with < without.size()) {
    if (required)
      throw_usage("--device: " + wish.device + ", but no rank on " + list(without) +
                  " can use a GPU (driver, CUDA_VISIBLE_DEVICES, permissions?)");
    std::vector<std::string> unused;
    std::ranges::copy_if(without, std::back_inserter(unused),
                         [&](const std::string& host) { return on_bus.contains(host); });
    if (with > 0)
      choice.notes.push_back({without.front(), "warn", "uncovered",
                              "GPUs are not measured, for no rank on " + list(without) +
                                  " can use one: all ranks measure with the CPUs"});
    else if (!unused.empty())
      choice.notes.push_back({unused.front(), "warn", "uncovered",
                              "GPUs are on the PCI bus of " + list(unused) +
                                  ", but no rank can use one: all ranks measure with the CPUs (driver, "
                                  "CUDA_VISIBLE_DEVICES, job without GPUs? --device host says that this is "
                                  "meant)"});
    return choice;
  }
  choice.kind = wish.backend;
  for (const auto& [host, ranks] : groups) {
    if (std::ranges::find(without, host) == without.end()) {
      place_host(choice, host, ranks, visible, wish.share_gpus);
      continue;
    }
    for (const int rank : ranks) choice.takes_part[static_cast<std::size_t>(rank)] = false;
    // Without one on the bus it may be a node that never had a GPU.
    const bool there = on_bus.contains(host);
    choice.notes.push_back(
        {host, there ? "fail" : "inconclusive", "missing",
         host + ": no rank can use a GPU" +
             (there ? ", though one is on the PCI bus" : ", and none is on the PCI bus") + "; " +
             std::to_string(with) + " of " + counted(groups.size(), "node") +
             " have one (driver, CUDA_VISIBLE_DEVICES, permissions? --device host measures "
             "CPUs); the run continues without it"});
  }
  return choice;
}

bool has_gpu_on_bus(const std::string& root, const std::string& vendor) {
  if (vendor.empty()) return false;
  std::error_code none;
  for (const auto& device : std::filesystem::directory_iterator(root + "/bus/pci/devices", none)) {
    const std::string kind = read_text((device.path() / "class").string()).value_or(""),
                      maker = read_text((device.path() / "vendor").string()).value_or("");
    const bool fits = kind.starts_with("0x03") || kind.starts_with("0x12");
    if (fits && maker.starts_with(vendor)) return true;
  }
  return false;
}

}  // namespace assay
