// SPDX-License-Identifier: Apache-2.0
// Copies between a GPU and pinned memory of the host, and inside its own. What is sent is a payload
// (kernels/payload.hpp) that the receiver makes again.
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/memory_ops.hpp"
#include "kernels/payload.hpp"
#include "suite/gpu_bound.hpp"
#include "suite/together.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"

namespace assay::memory {
namespace {

using kernels::PayloadErrors;
using kernels::PayloadKey;

bool inside(const Case& c) { return c.parameters.at("copy") == "local"; }
bool by_threads(const Case& c) { return c.parameters.at("copy").get<std::string>().ends_with("-sm"); }

/// One buffer for each way at both ends.
class Copies {
 public:
  Copies(const Case& c, Context& context)
      : context_(context),
        bytes_(c.parameters.at("bytes").get<std::size_t>()),
        pieces_(c.parameters.value("pieces", std::size_t{1})),
        inside_(inside(c)),
        by_(by_threads(c) ? CopyBy::threads : CopyBy::engine) {
    const std::string way = c.parameters.at("copy");
    down_ = !inside_ && !way.starts_with("d2h");
    up_ = !inside_ && !way.starts_with("h2d");
    ops_ = context.device.memory_ops();
    if (ops_ == nullptr) throw Error(ErrorKind::device, "this device has no memory of its own");
    context.device.reserve(2 * bytes_ * pieces_);
    device_ = context.device.arena().data();
    if (inside_) return;
    const auto& numa = context.topology.my_node().numa;
    const auto domain = c.parameters.at("numa").get<std::size_t>();
    host_ = static_cast<std::byte*>(
        ops_->host_buffer(domain < numa.size() ? numa[domain].os_index : -1, 2 * bytes_));
    context.count_batch();
  }

  std::string host_memory() const { return ops_->host_buffer_way(); }
  /// Inside the device's memory, what is read and what is written.
  double bytes_per_repetition() const {
    return static_cast<double>(bytes_ * pieces_) * (inside_ ? 2 : (down_ ? 1 : 0) + (up_ ? 1 : 0));
  }

  /// Before a sample: other data at the sources, so that a copy that did not happen shows. A host that is far
  /// too slow takes seconds for each of filling and checking, which are progress of their own.
  void prepare() {
    ++round_;
    if (down_) {
      kernels::host::payload_fill(key(0), host_, bytes_);
      context_.count_batch();
    }
    if (up_) context_.device.payload_fill(key(1), device_ + bytes_, bytes_);
    if (inside_) context_.device.payload_fill(key(2), device_, pieces_ * bytes_);
    context_.device.synchronize();
    context_.count_batch();
  }
  void run(std::uint64_t k) {
    for (std::uint64_t i = 0; i < k; ++i) {
      if (down_) ops_->start_copy(CopyWay::to_device, by_, device_, host_, bytes_);
      if (up_) ops_->start_copy(CopyWay::to_host, by_, host_ + bytes_, device_ + bytes_, bytes_);
      for (std::size_t piece = 0; inside_ && piece < pieces_; ++piece)
        ops_->start_copy(CopyWay::inside, by_, target() + piece * bytes_, device_ + piece * bytes_, bytes_);
    }
    ops_->finish_copies();
  }
  void check() {
    if (down_) {
      context_.injection_point("memory", device_, bytes_ / 8, 8);
      tell(context_.device.payload_check(key(0), device_, bytes_), 0, "on its way to the GPU");
      context_.count_batch();
    }
    if (up_)
      tell(kernels::host::payload_check(key(1), host_ + bytes_, bytes_), bytes_, "on its way to the host");
    if (inside_) {
      const std::size_t all = pieces_ * bytes_;
      context_.injection_point("memory", target(), all / 8, 8);
      tell(context_.device.payload_check(key(2), target(), all), all, "inside the GPU");
    }
  }

 private:
  std::byte* target() const noexcept { return device_ + pieces_ * bytes_; }
  PayloadKey key(int way) const {
    return kernels::payload_key(context_.random.key(), context_.world.rank(), way, round_);
  }

  void tell(const PayloadErrors& errors, std::size_t offset, const char* where) {
    if (errors.count == 0) return;
    const std::uint64_t first = offset / 8 + errors.first_index;
    context_.record.miscompare({"", context_.device_entity, first, errors.expected, errors.actual,
                                errors.actual, context_.since_start(now_s())},
                               errors.count);
    if (told_++ < 4)
      context_.record.event("memory-fault",
                            std::to_string(errors.count) + " wrong words " + where + ", the first at byte " +
                                std::to_string(8 * first),
                            context_.device_entity);
  }

  Context& context_;
  std::size_t bytes_, pieces_;
  bool inside_, down_ = false, up_ = false;
  CopyBy by_;
  MemoryOps* ops_ = nullptr;
  std::byte *device_ = nullptr, *host_ = nullptr;
  std::uint64_t round_ = 0;
  int told_ = 0;
};

Operation operation_of(Copies& copies) {
  Operation operation;
  operation.run = [&copies](std::uint64_t k) { copies.run(k); };
  operation.sync = [&copies] { copies.prepare(); };
  operation.verify = [&copies](std::size_t) { copies.check(); };
  return operation;
}

/// Of both ways together where both are used at once. Unknown where the memory is not next to the GPU: the
/// link between the sockets may be the bound.
GpuBound bound_of(const Case& c, const Context& context) {
  const Gpu gpu = own_gpu(context);
  if (inside(c)) return local_copy_bound(gpu);
  GpuBound bound = host_link_bound(gpu);
  const auto& numa = context.topology.my_node().numa;
  const auto domain = c.parameters.at("numa").get<std::size_t>();
  const bool near = numa.size() <= 1 || (domain < numa.size() && numa[domain].os_index == gpu.numa);
  if (!near) bound.rate = unsupported;
  if (c.parameters.at("copy") == "hd-both") bound.rate *= 2;
  return bound;
}

void add_row(const SampleSeries& series, double bytes, const GpuBound& bound, Context& context) {
  add_bound_share(add_device_row(series, bytes, context), "bandwidth", bound);
  context.record.add_time(series.warmup_s, series.timed_s, series.verify_s);
}

}  // namespace

void run_copy(const Case& c, Context& context) {
  auto& bandwidth = context.record.declare(metrics().of("copy", "bandwidth"));
  // GPUs that copy together may share a bridge. No figure is known of what threads reach, and local copies.
  const bool alone = c.parameters.at("mode") == "alone" || context.node.size() == 1;
  if (alone && !by_threads(c) && !inside(c)) bandwidth.judging->floor = results::Floor::gpu_bound;
  const GpuBound bound = bound_of(c, context);
  declare_bound(metrics().of("copy", "bound_share"), bound, context.record);
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  Together together(context.node);
  std::optional<Copies> copies;
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  const double begin = now_s();
  together.guarded([&] {
    copies.emplace(c, context);
    if (!inside(c)) context.record.parameter("host_memory", copies->host_memory());
  });
  context.record.add_time(now_s() - begin, 0, 0);
  if (c.parameters.at("mode") == "alone") {
    context.take_turns(c.turns, [&] {
      together.guarded([&] {
        add_row(sample(operation_of(*copies), plan), copies->bytes_per_repetition(), bound, context);
      });
    });
    share_times(context.record, context.node);
  } else if (!together.any(false)) {
    const SampleSeries series = sample(together.wrap(operation_of(*copies)), together.wrap(plan));
    together.guarded([&] { add_row(series, copies->bytes_per_repetition(), bound, context); });
  }
  together.rethrow();
}

}  // namespace assay::memory
