// SPDX-License-Identifier: Apache-2.0
#include "suite_rig.hpp"

#include <chrono>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {
namespace {

constexpr std::uint64_t memory_bytes = 64u << 20;

Topology make_topology(int ranks, int nodes, int self) {
  Topology topology;
  topology.self = self;
  const int local = (ranks + nodes - 1) / nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    RankPlace place;
    place.rank = rank;
    place.node = rank / local;
    place.local_rank = rank % local;
    place.local_size = std::min(local, ranks - place.node * local);
    place.cpus = place.mask = {place.local_rank};
    place.numa = 0;
    topology.ranks.push_back(place);
    if (place.local_rank == 0) {
      Node node;
      node.hostname = "node" + std::to_string(place.node);
      node.id = "id" + std::to_string(place.node);
      node.id_source = "hostname";
      topology.nodes.push_back(node);
    }
  }
  return topology;
}

}  // namespace

std::unique_ptr<Communicator> CorruptingCommunicator::split(int color, int key) {
  auto part = inner_->split(color, key);
  if (part == nullptr) return nullptr;
  return std::make_unique<CorruptingCommunicator>(std::move(part), world_rank_, corruption_);
}

bool CorruptingCommunicator::due(int tag, std::size_t bytes) {
  Corruption& c = *corruption_;
  if (world_rank_ != c.rank || tag != c.tag || bytes < c.least_bytes || bytes <= c.byte) return false;
  const std::size_t n = seen_++;
  if (n < c.nth || n - c.nth >= c.times) return false;
  ++c.hits;
  return true;
}

void CorruptingCommunicator::send(const void* data, std::size_t bytes, int peer, int tag) {
  const Corruption& c = *corruption_;
  if (world_rank_ == c.rank && peer == c.slow_peer && tag == c.tag)
    std::this_thread::sleep_for(std::chrono::duration<double>(c.delay_s));
  inner_->send(data, bytes, peer, tag);
}

void CorruptingCommunicator::recv(void* data, std::size_t bytes, int peer, int tag) {
  inner_->recv(data, bytes, peer, tag);
  if (due(tag, bytes)) static_cast<std::byte*>(data)[corruption_->byte] ^= std::byte{0x10};
}

void CorruptingCommunicator::irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) {
  inner_->irecv(data, bytes, peer, tag, request);
  if (due(tag, bytes)) pending_ = static_cast<std::byte*>(data) + corruption_->byte;
}

void CorruptingCommunicator::wait_all(std::span<Request> requests) {
  inner_->wait_all(requests);
  if (pending_ != nullptr) *pending_ ^= std::byte{0x10};
  pending_ = nullptr;
}

void CorruptingCommunicator::all_reduce(const void* in, void* out, std::size_t count, DataType type,
                                        ReduceOp op) {
  inner_->all_reduce(in, out, count, type, op);
  if (type == DataType::fp32 && due(-1, count * size_of(type)))
    static_cast<std::byte*>(out)[corruption_->byte] ^= std::byte{0x10};
}

SuiteRig::SuiteRig(Suite& suite, int nodes, Level level)
    : SuiteRig(suite, nodes, level, make_host_device({0}, {0}, false)) {}

SuiteRig::SuiteRig(Suite& suite, int nodes, Level level, std::unique_ptr<Device> device)
    : suite_(suite), corruption_(std::make_shared<Corruption>()) {
  auto world = mpi::duplicate_world();
  const int me = world->rank();
  topology_ = make_topology(world->size(), nodes, me);
  if (device->kind() == "host")
    world_ = std::make_unique<CorruptingCommunicator>(std::move(world), me, corruption_);
  else
    world_ = std::move(world);
  node_ = world_->split(topology_.me().node, me);
  leaders_ = world_->split(topology_.me().local_rank == 0 ? 0 : -1, me);
  device_ = std::move(device);
  topology_.device_kind = device_->kind();
  if (const GpuTransports* transports = gpu_transports(topology_.device_kind))
    links_ = std::make_unique<GpuLinks>(*transports, *device_, *world_, *node_, leaders_.get(),
                                        GpuDirect::off, nullptr);
  entities_ = std::make_unique<EntityTable>(topology_);
  config_.level = level;
  config_.seed = 42;
  for (const OptionSpec& spec : suite_.options()) config_.options.set(spec, {});
}

void SuiteRig::option(const std::string& name, const std::string& text) {
  if (name == "suites") config_.options.set({name, OptionKind::list, "", "", {}, ""}, {text});
  for (const OptionSpec& spec : suite_.options())
    if (spec.name == name) config_.options.set(spec, {text});
}

std::vector<Case> SuiteRig::plan() { return suite_.plan({config_, topology_, memory_bytes, config_.seed}); }

Case SuiteRig::planned(const std::string& name) {
  for (const Case& c : plan())
    if (c.name == name) return c;
  throw Error(ErrorKind::internal, "no case " + name);
}

void SuiteRig::prepare() {
  suite_.prepare(plan(), config_, *device_, world(), [] { return false; });
}

CaseRecord SuiteRig::run(Case c, double seconds_to_deadline, std::optional<double> seconds) {
  c.seconds = c.min_seconds = seconds.value_or(std::min(c.seconds, 0.3));
  device_->reserve(c.bytes);
  CaseRecord record;
  Context context{{config_, topology_, *entities_, *device_, links_ ? links_->world() : *world_,
                   links_ ? links_->node() : *node_, links_ ? links_->leaders() : leaders_.get()},
                  RandomStream(config_.seed, "case").child(c.path()),
                  now_s(),
                  now_s() + seconds_to_deadline,
                  record,
                  entities_->device_of_rank(world_->rank())};
  context.end_s = context.deadline_s;
  context.retest = c.retest.get();
  context.gpu_links = links_.get();
  suite_.run(c, context);
  return record;
}

}  // namespace assay
