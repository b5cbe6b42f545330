// SPDX-License-Identifier: Apache-2.0
#include "topology/launch_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "base/process_stat.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

constexpr std::size_t kNamesShown = 8;

std::string count_of(std::int64_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

class Findings {
 public:
  void add(const char* severity, const char* kind, std::string text, int node = -1) {
    list_.push_back({severity, kind, std::move(text), node});
  }
  std::vector<LaunchFinding> take() { return std::move(list_); }

 private:
  std::vector<LaunchFinding> list_;
};

void compare_count(Findings& out, std::int64_t found, std::int64_t expected, const char* what,
                   const std::string& where, int node, const char* severity = "inconclusive",
                   const std::string& why = "") {
  if (expected <= 0 || found == expected) return;
  const std::string text = where + count_of(found, what) + ", expected " + std::to_string(expected) + why;
  out.add(found < expected ? severity : "inconclusive", found < expected ? "missing" : "mismatch", text,
          node);
}

/// GPUs are parts of the machine, of which one too few is a fault of its node, unless the job is not given
/// it.
void compare_gpus(Findings& out, const Node& n, int node, std::int64_t expected) {
  const auto found = static_cast<std::int64_t>(n.whole_gpus());
  const auto hidden = static_cast<std::int64_t>(n.gpus_hidden.size());
  const bool given = found + hidden < expected || found >= expected;
  compare_count(out, found, expected, "GPU", n.hostname + ": ", node, given ? "fail" : "inconclusive",
                given ? "" : ": the driver keeps " + std::to_string(hidden) + " more from this job (cgroup)");
}

void check_expectations(Findings& out, const Topology& t, const LaunchExpectations& expect) {
  compare_count(out, static_cast<std::int64_t>(t.nodes.size()), expect.nodes, "node", "the launch has ", -1);
  compare_count(out, t.size(), expect.ranks, "rank", "the launch has ", -1);
  for (std::size_t n = 0; n < t.nodes.size(); ++n) {
    const int node = static_cast<int>(n);
    // Host devices are as many as were launched.
    if (t.measures_gpus())
      compare_gpus(out, t.nodes[n], node, expect.devices);
    else
      compare_count(out, static_cast<std::int64_t>(t.ranks_of(node).size()), expect.devices, "device",
                    t.nodes[n].hostname + ": ", node);
  }
}

void check_gpus(Findings& out, const Topology& t, int node, const LaunchExpectations& expect) {
  const Node& n = t.nodes[static_cast<std::size_t>(node)];
  for (const std::string& lost : n.gpus_lost) out.add("fail", "missing", n.hostname + ": " + lost, node);
  if (!n.gpu_trouble.empty())
    out.add("warn", "missing", n.hostname + ": NVML cannot be used: " + n.gpu_trouble, node);
  if (!t.measures_gpus()) {
    if (expect.host_only || n.gpus.empty()) return;
    out.add(expect.severity_of_uncovered(), "uncovered",
            n.hostname + ": no rank can use its " +
                count_of(static_cast<std::int64_t>(n.gpus.size()), "GPU") +
                ", which are not measured ('assay list devices' says why; --device host leaves them alone)",
            node);
    return;
  }
  std::set<int> driven;
  for (const int rank : t.ranks_of(node)) driven.insert(t.ranks[static_cast<std::size_t>(rank)].gpu);
  // A rank has a slice of a GPU in MIG mode; which slices a GPU has is not known here.
  const bool slices = std::any_of(driven.begin(), driven.end(), [&](int gpu) {
    return gpu >= 0 && n.is_slice(static_cast<std::size_t>(gpu));
  });
  std::string names;
  std::int64_t idle = 0;
  for (int gpu = 0; gpu < static_cast<int>(n.gpus.size()); ++gpu) {
    const bool cut = slices && n.gpus[static_cast<std::size_t>(gpu)].mig.starts_with("on");
    if (driven.contains(gpu) || cut) continue;
    names += (idle++ == 0 ? "" : ", ") + n.gpu_name(static_cast<std::size_t>(gpu));
  }
  if (idle == 0) return;
  out.add(expect.severity_of_uncovered(), "uncovered",
          n.hostname + ": " + std::to_string(idle) + " of " +
              count_of(static_cast<std::int64_t>(n.gpus.size()), "GPU") + " (" + names +
              ") belong to no rank and are not measured",
          node);
}

/// NVML shows the node's first rank those GPUs alone that it may use, where each rank is given its own.
void check_nvml(Findings& out, const Topology& t, int node) {
  const Node& n = t.nodes[static_cast<std::size_t>(node)];
  std::string names;
  std::int64_t unseen = 0;
  for (std::size_t gpu = 0; gpu < n.gpus.size(); ++gpu)
    if (n.unseen_by_nvml(gpu)) names += (unseen++ == 0 ? "" : ", ") + n.gpu_name(gpu);
  const bool seen = std::any_of(n.gpus.begin(), n.gpus.end(), [](const Gpu& g) { return !g.name.empty(); });
  if (unseen == 0 || !seen) return;
  out.add("warn", "uncovered",
          n.hostname + ": NVML does not show " + std::to_string(unseen) + " of " +
              count_of(static_cast<std::int64_t>(n.gpus.size()), "GPU") + " (" + names +
              ") to the node's first rank: nobody reads their error counters, Xids and throttling (let every "
              "task see all GPUs of its node)",
          node);
}

void check_singletons(Findings& out, const Topology& t, const LaunchEnvironment& env, int siblings) {
  if (env.launched && env.size > 0 && env.size != t.size()) {
    const std::string text = "the launcher (" + env.launcher + ") started " + count_of(env.size, "process") +
                             ", but MPI sees " + std::to_string(t.size()) +
                             ": is it the launcher of this MPI library?";
    out.add("inconclusive", t.size() == 1 ? "singletons" : "mismatch", text);
  } else if (t.size() == 1 && siblings > 0) {
    out.add("inconclusive", "singletons",
            std::to_string(siblings + 1) +
                " processes with this command line were started side by side, each alone in MPI: start them "
                "with this MPI's mpirun");
  }
}

// Physical cores of the node in a CPU set, as lists of hardware threads.
std::vector<std::vector<int>> cores_in(const Node& node, const std::set<int>& cpus) {
  std::vector<std::vector<int>> cores;
  for (const auto& core : node.core_pus) {
    std::vector<int> pus;
    std::copy_if(core.begin(), core.end(), std::back_inserter(pus),
                 [&](int pu) { return cpus.contains(pu); });
    if (!pus.empty()) cores.push_back(std::move(pus));
  }
  return cores;
}

std::set<int> allowed_on(const Node& node) {
  if (!node.allowed_cpus.empty()) return {node.allowed_cpus.begin(), node.allowed_cpus.end()};
  std::set<int> all;
  for (const auto& core : node.core_pus) all.insert(core.begin(), core.end());
  return all;
}

void check_coverage(Findings& out, const Topology& t, int node, const LaunchExpectations& expect) {
  const Node& n = t.nodes[static_cast<std::size_t>(node)];
  std::set<int> masks;
  for (const int rank : t.ranks_of(node)) {
    const auto& mask = t.ranks[static_cast<std::size_t>(rank)].mask;
    masks.insert(mask.begin(), mask.end());
  }
  const auto allowed = cores_in(n, allowed_on(n));
  std::vector<int> left;
  std::size_t uncovered = 0;
  for (const auto& core : allowed) {
    if (std::any_of(core.begin(), core.end(), [&](int pu) { return masks.contains(pu); })) continue;
    ++uncovered;
    left.insert(left.end(), core.begin(), core.end());
  }
  if (uncovered == 0) return;
  out.add(expect.severity_of_uncovered(), "uncovered",
          n.hostname + ": " + std::to_string(uncovered) + " of " +
              count_of(static_cast<std::int64_t>(allowed.size()), "core") + " (CPUs " +
              format_cpu_list(left) + ") belong to no rank and are not measured",
          node);
}

void check_load(Findings& out, const Topology& t, int node, bool oversubscribe_asked) {
  const Node& n = t.nodes[static_cast<std::size_t>(node)];
  const auto ranks = t.ranks_of(node);
  std::set<int> used;
  int threads = 0, fewest = 0, most = 0;
  bool shared = false;
  for (const int rank : ranks) {
    const RankPlace& place = t.ranks[static_cast<std::size_t>(rank)];
    used.insert(place.cpus.begin(), place.cpus.end());
    threads += place.threads;
    fewest = fewest == 0 ? place.threads : std::min(fewest, place.threads);
    most = std::max(most, place.threads);
    shared = shared || place.shares_cpus;
  }
  const auto cores = static_cast<std::int64_t>(cores_in(n, used).size());
  const std::string load = n.hostname + ": " + count_of(static_cast<std::int64_t>(ranks.size()), "rank") +
                           " with " + count_of(threads, "thread") + " on " + count_of(cores, "core");
  // A quota alone also makes ranks take turns; that has a finding of its own.
  if (threads > cores && cores > 0) {
    out.add(oversubscribe_asked ? "info" : "warn", "oversubscribed",
            load + (oversubscribe_asked ? ", as requested from the launcher" : "") +
                ": they share cores, and rates per rank are lower",
            node);
  } else if (shared && !(n.cpu_quota_cores < threads)) {
    out.add("warn", "oversubscribed", load + ": some share a core", node);
  }
  if (fewest != most) {
    out.add("info", "uneven",
            load + ": between " + std::to_string(fewest) + " and " + std::to_string(most) + " threads a rank",
            node);
  }
  const auto reachable = static_cast<double>(cores_in(n, allowed_on(n)).size());
  if (n.cpu_quota_cores < reachable) {
    char quota[32];
    std::snprintf(quota, sizeof quota, "%.4g", n.cpu_quota_cores);
    out.add("warn", "quota",
            n.hostname + ": the cgroup's CPU quota is " + quota + " of " +
                count_of(static_cast<std::int64_t>(reachable), "core"),
            node);
  }
}

std::string some_names(const Topology& t, const std::vector<int>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kNamesShown; ++i) {
    text += (i > 0 ? ", " : "") + t.nodes[static_cast<std::size_t>(nodes[i])].hostname;
  }
  if (nodes.size() > kNamesShown) text += " and " + std::to_string(nodes.size() - kNamesShown) + " more";
  return text;
}

std::string shown(const std::string& value) { return value.empty() ? "none" : "'" + value + "'"; }

using NodesByValue = std::map<std::string, std::vector<int>>;

void check_key(Findings& out, const Topology& t, const char* severity, const std::string& key,
               const NodesByValue& by_value) {
  const auto major = std::max_element(by_value.begin(), by_value.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const bool majority = 2 * major->second.size() > t.nodes.size();
  std::string all;
  for (const auto& [value, nodes] : by_value) {
    if (majority && value == major->first) continue;
    const std::string text = some_names(t, nodes) + ": " + key + " is " + shown(value);
    if (!majority) {
      all += (all.empty() ? "" : "; ") + text;
      continue;
    }
    const std::string rest = count_of(static_cast<std::int64_t>(major->second.size()), "other node");
    out.add(severity, "mismatch", text + ", " + shown(major->first) + " on " + rest,
            nodes.size() == 1 ? nodes.front() : -1);
  }
  if (!majority) out.add(severity, "mismatch", all);
}

// What ought to be the same everywhere. The inventory's tables judge the machine itself, so that what they
// hold is told here for information only; libraries, drivers and environment variables are judged here.
void check_software(Findings& out, const Topology& t) {
  // A node that lacks a key has the empty value.
  const auto check = [&](const char* severity, const std::string& key, const auto& value_of) {
    NodesByValue by_value;
    for (std::size_t n = 0; n < t.nodes.size(); ++n)
      by_value[value_of(t.nodes[n])].push_back(static_cast<int>(n));
    if (by_value.size() > 1) check_key(out, t, severity, key, by_value);
  };
  const std::map<std::string, std::string Node::*> told = {{"kernel", &Node::kernel},
                                                           {"cpu model", &Node::cpu_model},
                                                           {"microcode", &Node::microcode},
                                                           {"os", &Node::os}};
  for (const auto& [key, field] : told)
    check("info", key, [field = field](const Node& node) { return node.*field; });
  std::set<const void*> seen;  // nodes share their lists
  std::set<std::string> keys;
  for (const Node& node : t.nodes) {
    if (!seen.insert(&node.software.get()).second) continue;
    for (const auto& [key, value] : node.software) keys.insert(key);
  }
  for (const std::string& key : keys)
    check("warn", key, [&key](const Node& node) {
      const auto at = node.software.find(key);
      return at == node.software.end() ? std::string() : at->second;
    });
}

int parent_of(const std::string& proc, int pid) {
  const auto stat = process_stat(std::to_string(pid), proc);
  return stat ? stat->parent : -1;
}

std::string command_of(const std::string& proc, int pid) {
  return read_text(proc + "/" + std::to_string(pid) + "/cmdline").value_or("");
}

}  // namespace

std::vector<LaunchFinding> check_launch(const Topology& topology, const LaunchExpectations& expectations,
                                        const LaunchEnvironment& environment, int sibling_singletons) {
  Findings out;
  check_expectations(out, topology, expectations);
  check_singletons(out, topology, environment, sibling_singletons);
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    check_gpus(out, topology, static_cast<int>(node), expectations);
    if (!expectations.host_only) check_nvml(out, topology, static_cast<int>(node));
    if (topology.device_kind == "host") check_coverage(out, topology, static_cast<int>(node), expectations);
    check_load(out, topology, static_cast<int>(node), environment.oversubscribe_asked);
  }
  if (topology.nodes.size() > 1) check_software(out, topology);
  return out.take();
}

int count_sibling_singletons(const std::string& proc) {
  int self = static_cast<int>(getpid());
  if (proc != "/proc") self = static_cast<int>(read_integer(proc + "/self_pid").value_or(-1));
  const std::string command = command_of(proc, self);
  if (command.empty()) return 0;
  // The program may have forked to supervise itself: its parent is then the same program, and no sibling.
  int top = self, parent = parent_of(proc, self);
  for (int i = 0; i < 4 && parent > 1 && command_of(proc, parent) == command; ++i) {
    top = parent;
    parent = parent_of(proc, top);
  }
  if (parent <= 0) return 0;
  int siblings = 0;
  for (const std::string& entry : sysfs::numbered(proc, "")) {
    const int pid = std::stoi(entry);
    if (pid != top && parent_of(proc, pid) == parent && command_of(proc, pid) == command) ++siblings;
  }
  return siblings;
}

}  // namespace assay
