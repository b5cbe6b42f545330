// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/carrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "run/injector.hpp"
#include "suites/p2p/choice.hpp"
#include "topology/oversubscription.hpp"
#include "transport/agree.hpp"
#include "transport/gpu_links.hpp"
#include "transport/renumbered_communicator.hpp"
#include "transport/tcp_reach.hpp"

namespace assay::p2p {
namespace {

bool one_sided(const Spec& spec) { return spec.mode == Mode::put || spec.mode == Mode::get; }

/// For a partner to answer, also on a busy host. At smoke less than the time after which ranks that all wait
/// count as stuck.
double answer_s(const Context& context) { return context.config.level == Level::smoke ? 4 : 10; }

GpuLinks& links_of(const Context& context) {
  if (context.gpu_links == nullptr) throw Error(ErrorKind::device, "this assay was built without CUDA");
  return *context.gpu_links;
}

}  // namespace

std::set<std::string> parts_of(const std::string& text, const char* separators) {
  std::set<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Carrier::Carrier(const Spec& spec, const Shape& shape, const Schedule& schedule, Communicator& group,
                 Context& context)
    : world_(context.world), group_(group), payload_buffer_(context.device) {
  if (spec.transport == "ucx") use_ucx(spec, shape, schedule, context);
  if (spec.transport == "nccl") use_nccl(spec, context);
  if (copies_between_peers(spec.transport)) use_peers(spec, context);
  if (remote_ == nullptr || context.injector == nullptr) return;
  faulty_memory_ = std::make_unique<FaultyMemory>(*remote_, *context.injector, payload_buffer_.data());
  remote_ = faulty_memory_.get();
}

/// UCX is about the network: on nodes with GPUs it carries host memory.
void Carrier::use_ucx(const Spec& spec, const Shape& shape, const Schedule& schedule, Context& context) {
  if (context.device.has_own_memory()) {
    host_.resize(shape.arena_bytes());
    payload_buffer_ = PayloadBuffer(host_);
  }
  for (const Round& round : schedule)
    if (const int peer = partner_of(round, world_.rank()); peer >= 0) partners_.push_back(peer);
  const std::string transports = spec.nic.empty() ? "" : rail_of(spec, context.topology).transports;
  const std::string& nic = spec.nic_of(context.topology.me().node);
  if (transports == "tcp") agree_that_tcp_reaches(nic, context);
  ucx_ = UcxCommunicator::make(world_, group_,
                               {nic, transports, oversubscription(context.topology) > 1, context.heartbeat,
                                one_sided(spec), partners_});
  faulty_ = context.with_faults(*ucx_);
  std::string problem = ucx_->connect(partners_);
  if (problem.empty()) problem = no_answer(ucx_->silent(partners_, answer_s(context)), nic, context);
  agree_problem(group_, problem);
  if (one_sided(spec)) remote_ = &ucx_->expose(group_, {payload_buffer_.data(), payload_buffer_.size()});
}

/// A NIC may have an address that others do not reach, or a firewall behind it: the case ends in error, and
/// the run goes on.
void Carrier::agree_that_tcp_reaches(const std::string& nic, const Context& context) {
  const TcpReach mine(nic);
  std::map<int, std::string> address;  // by rank of the world
  for (const std::string& told :
       group_.all_gather_text(fmt::format("{} {}", world_.rank(), mine.address()))) {
    const std::size_t blank = told.find(' ');
    address[std::stoi(told.substr(0, blank))] = told.substr(blank + 1);
  }
  std::vector<std::string> theirs;
  for (const int peer : partners_) theirs.push_back(address[peer]);
  std::vector<int> silent;
  for (const std::size_t i : mine.silent(theirs, answer_s(context))) silent.push_back(partners_[i]);
  agree_problem(group_, no_answer(silent, nic, context));
}

std::string Carrier::no_answer(const std::vector<int>& peers, const std::string& nic,
                               const Context& context) const {
  if (peers.empty()) return {};
  const auto host = [&](int rank) {
    const auto node = context.topology.ranks[static_cast<std::size_t>(rank)].node;
    return context.topology.nodes[static_cast<std::size_t>(node)].hostname;
  };
  std::string text = fmt::format("{}{}{}: no answer within {} s from", host(world_.rank()),
                                 nic.empty() ? "" : "/", nic, answer_s(context));
  for (const int peer : peers) text += " " + host(peer);
  return text;
}

void Carrier::use_nccl(const Spec& spec, Context& context) {
  const bool cross = spec.scope == Scope::cross;
  Communicator& nccl =
      links_of(context).nccl(cross ? GpuLinks::Scope::world : GpuLinks::Scope::node, context.deadline_s);
  renumbered_ = std::make_unique<RenumberedCommunicator>(world_, nccl);
  faulty_ = context.with_faults(*renumbered_);
}

/// Where one GPU has no peer access to another, all pairs of the node go by way of the host, and all
/// ranks are told.
void Carrier::use_peers(const Spec& spec, Context& context) {
  GpuLinks& links = links_of(context);
  GpuSettings settings;
  settings.deadline_s = context.deadline_s;
  settings.heartbeat = links.heartbeat();
  const CopyEngine engine = spec.transport == "cuda" ? CopyEngine::dma : CopyEngine::kernel;
  peers_ = links.transports().make_peer(world_, group_, context.device, engine, settings);
  if (!peers_->refused().empty())
    context.record.event("path", "no access between GPUs: " + peers_->refused(), context.device_entity);
  const bool open = group_.min(peers_->refused().empty() ? 1.0 : 0.0) > 0;
  peer_path_ = open ? peers_->path() : "cuda/refused " + world_.path();
  if (open) remote_ = peers_.get();
}

Communicator& Carrier::comm() const noexcept {
  if (faulty_) return *faulty_;
  if (renumbered_) return *renumbered_;
  return ucx_ ? *ucx_ : world_;
}

std::string Carrier::path() const {
  if (renumbered_) return renumbered_->path();
  if (!ucx_ && !peers_) return world_.path();
  if (peers_) return peer_path_;
  std::set<std::string> paths;
  for (const std::string& text : group_.all_gather_text(partners_.empty() ? "" : ucx_->path()))
    paths.merge(parts_of(text, ","));
  return fmt::format("{}", fmt::join(paths, ","));
}

}  // namespace assay::p2p
