// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/units.hpp"
#include "suites/p2p/rails.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay::p2p {
namespace {

/// Links between GPUs are as fast as they get only from some ten MiB on.
std::vector<std::size_t> level_sizes(Level level, bool gpus) {
  if (level == Level::smoke) return {mib};
  if (level == Level::quick && gpus) return {64 * kib, 4 * mib, 64 * mib};
  if (level == Level::quick) return {64 * kib, 4 * mib};
  std::vector<std::size_t> sizes{8};
  for (std::size_t size = 16; size <= (gpus ? 256 : 64) * mib; size *= 4) sizes.push_back(size);
  return sizes;
}

}  // namespace

std::vector<std::size_t> wanted_sizes(const Config& config, const Topology& topology) {
  if (!config.options.has("p2p.sizes")) return level_sizes(config.level, topology.measures_gpus());
  std::set<std::size_t> sizes;
  for (const std::string& text : config.options.list("p2p.sizes")) {
    std::uint64_t bytes = 0;
    try {
      bytes = parse_bytes(text);
    } catch (const Error& e) {
      throw_usage("--p2p.sizes: " + std::string(e.what()));
    }
    if (bytes == 0) throw_usage("--p2p.sizes: '" + text + "' is no message size");
    sizes.insert(bytes);
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<std::string> wanted_transports(const Config& config, const Topology& topology) {
  const bool has_ucx = !UcxCommunicator::version().empty();
  if (!config.options.has("p2p.transport")) {
    if (topology.measures_gpus()) {
      if (config.level == Level::smoke) return {"nccl"};
      if (config.level == Level::quick) return {"nccl", "cuda"};
      return {"nccl", "cuda", "cuda-sm", "mpi"};
    }
    if (config.level < Level::standard || !has_ucx) return {"mpi"};
    return {"mpi", "ucx"};
  }
  const auto wanted = config.options.list("p2p.transport");
  if (!has_ucx && std::find(wanted.begin(), wanted.end(), "ucx") != wanted.end())
    throw_usage("--p2p.transport: this assay was built without UCX");
  return wanted;
}

std::vector<std::string> wanted_nics(const Config& config, const Topology& topology) {
  const bool asked = config.options.has("p2p.nics");
  if (!asked && (config.level < Level::standard || UcxCommunicator::version().empty())) return {};
  std::vector<std::string> there;
  for (const Rail& rail : rails(topology)) there.push_back(rail.nic);
  if (!asked) return there;
  std::vector<std::string> wanted;  // each once
  for (const std::string& nic : config.options.list("p2p.nics"))
    if (std::find(wanted.begin(), wanted.end(), nic) == wanted.end()) wanted.push_back(nic);
  if (wanted == std::vector<std::string>{"none"}) return {};
  if (UcxCommunicator::version().empty()) throw_usage("--p2p.nics: this assay was built without UCX");
  if (wanted == std::vector<std::string>{"all"}) return there;
  for (const std::string& nic : wanted)
    if (std::find(there.begin(), there.end(), nic) == there.end())
      throw_usage("--p2p.nics: '" + nic + "' is no NIC that all nodes have up, with an address (there are: " +
                  fmt::format("{}", fmt::join(there, ", ")) + ")");
  return wanted;
}

}  // namespace assay::p2p
