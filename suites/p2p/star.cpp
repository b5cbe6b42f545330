// SPDX-License-Identifier: Apache-2.0
#include "suites/p2p/star.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/units.hpp"
#include "kernels/payload.hpp"
#include "measure/sizing.hpp"
#include "suite/gpu_bound.hpp"
#include "suite/together.hpp"
#include "suites/p2p/carrier.hpp"
#include "suites/p2p/choice.hpp"
#include "suites/p2p/p2p_metrics.hpp"
#include "suites/p2p/p2p_plan.hpp"
#include "workload/payload_error.hpp"

namespace assay::p2p {
namespace {

/// A repetition has a message for every rank of the node, the centre's own place stays empty: as one message
/// of that size, where plan and sizes are those of pairs.
Spec whole(const std::string& transport, std::size_t bytes, int ranks) {
  return {Mode::put, Scope::node, transport, (bytes + 63) / 64 * 64 * static_cast<std::size_t>(ranks)};
}

/// What the ranks of a node do in turns of one centre.
class Star {
 public:
  Star(const Case& c, const Shape& shape, const Carrier& carrier, Context& context)
      : context_(context),
        carrier_(carrier),
        out_(c.operation == one_to_all),
        bytes_(c.parameters.at("bytes")),
        shape_(shape),
        seconds_(c.seconds),
        samples_(c.samples),
        fault_(context.sampling(c.seconds).fault),
        bound_(bound_of(whole(c.parameters.at("transport"), bytes_, 1), context.topology)),
        ranks_(context.topology.ranks_of(context.topology.me().node)),
        together_(context.node) {}

  void turn(std::size_t centre) {
    centre_ = ranks_[centre];
    const bool mine = centre_ == context_.world.rank();
    Sizing sizing({bytes_, shape_.repetitions}, seconds_ / least_samples, seconds_ / 2);
    const double begin = now_s();
    std::vector<double> values;
    std::vector<double> starts;
    for (;;) {
      Control control;
      const bool warm_up = !sizing.done();
      const bool late =
          now_s() > context_.end_s || (values.size() >= least_samples && now_s() - begin > seconds_);
      if (mine && !late && (warm_up || values.size() < samples_))
        control = {warm_up ? Control::warm_up : Control::sample, warm_up ? sizing.next() : sizing.fitted()};
      context_.node.broadcast(&control, sizeof control, static_cast<int>(centre));
      if (control.go == Control::stop) break;
      const double start = now_s(), seconds = batch(control);
      if (together_.any(false)) return;
      if (warm_up && mine) sizing.took(seconds);
      if (control.go == Control::warm_up) continue;
      const auto messages = static_cast<double>((ranks_.size() - 1) * control.batch.repetitions);
      values.push_back(messages * static_cast<double>(control.batch.bytes) / seconds);
      starts.push_back(context_.since_start(start));
    }
    if (mine && !values.empty()) add_row(std::move(values), std::move(starts), sizing.fitted());
  }

  void finish() {
    report_wrong(wrong_, context_);
    context_.record.add_time(times_.warmup_s, times_.timed_s, times_.verify_s);
    together_.rethrow();
  }

 private:
  /// Of a GPU in the centre, however slow it is: one sample is too few to confirm anything.
  static constexpr int least_samples = 3;
  struct Control {
    enum Go : std::uint64_t { stop, sample, warm_up } go = stop;
    Portion batch = {};
  };

  /// Whose messages cross the links: from or to the centre.
  std::vector<int> partners() const {
    std::vector<int> all = ranks_;
    if (context_.world.rank() != centre_) return {centre_};
    std::erase(all, centre_);
    return all;
  }
  /// The place of a message is that of its rank which is not the centre, in all arenas.
  std::size_t offset(std::uint64_t repetition, int peer) const {
    const int rank = peer == centre_ ? context_.world.rank() : peer;
    const auto place =
        static_cast<std::size_t>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
    return repetition % shape_.slots * shape_.slot_bytes() + place * (shape_.bytes / ranks_.size()) / 64 * 64;
  }
  template <typename Message>
  void each(const Control& control, Message&& message) const {
    for (std::uint64_t i = next_; i < next_ + control.batch.repetitions; ++i)
      for (const int peer : partners()) message(i, peer, offset(i, peer));
  }

  /// Seconds of the rank that writes longest, which all begin together; infinite where one failed.
  double batch(const Control& control) {
    const PayloadBuffer& buffer = carrier_.payload_buffer();
    const int me = context_.world.rank();
    const bool sends = (me == centre_) == out_;
    const double t0 = now_s();
    if (sends)
      together_.guarded([&] {
        each(control, [&](std::uint64_t i, int peer, std::size_t at) {
          buffer.fill(kernels::payload_key(context_.random.key(), me, peer, i), buffer.data() + at,
                      control.batch.bytes);
        });
        buffer.settle();
      });
    if (together_.any(false)) return 0;
    const double t1 = now_s();
    if (sends) together_.guarded([&] { write(control, t1); });
    const double t2 = now_s();
    constexpr double never = std::numeric_limits<double>::infinity();
    const double seconds = context_.node.max(together_.failed() ? never : sends ? t2 - t1 : 0.0);
    if (seconds < never && !sends) together_.guarded([&] { verify(control); });
    next_ += control.batch.repetitions;
    (control.go == Control::warm_up ? times_.warmup_s : times_.timed_s) += t2 - t1;
    times_.verify_s += t1 - t0 + (now_s() - t2);
    return seconds;
  }

  void write(const Control& control, double begin_s) {
    std::byte* data = carrier_.payload_buffer().data();
    each(control, [&](std::uint64_t, int peer, std::size_t at) {
      carrier_.remote()->put(data + at, control.batch.bytes, peer, at);
    });
    for (const int peer : partners()) carrier_.remote()->complete(peer);
    if (fault_) fault_(begin_s, control.batch.repetitions, control.go == Control::warm_up);
  }

  void verify(const Control& control) {
    const PayloadBuffer& buffer = carrier_.payload_buffer();
    each(control, [&](std::uint64_t i, int peer, std::size_t at) {
      const auto key = kernels::payload_key(context_.random.key(), peer, context_.world.rank(), i);
      if (const auto bad = check_payload(buffer, key, at, control.batch.bytes, peer, i))
        wrong_.push_back(*bad);
    });
  }

  void add_row(std::vector<double> values, std::vector<double> starts, const Portion& batch) {
    auto& row = context_.record.add_row(context_.device_entity);
    row.block.assign(values.size(), 0);
    row.t = std::move(starts);
    row.values["bandwidth"] = std::move(values);
    row.values["repetitions"] = {static_cast<double>(batch.repetitions)};
    row.values["message_bytes"] = {static_cast<double>(batch.bytes)};
    if (*bound_.by != 0)
      add_bound_share(row, "bandwidth", part_bound(bound_, star_bound(context_.topology, centre_)));
  }

  Context& context_;
  const Carrier& carrier_;
  bool out_;
  std::size_t bytes_;
  Shape shape_;
  double seconds_;
  std::size_t samples_;
  TimedFault fault_;
  GpuBound bound_;
  std::vector<int> ranks_;  ///< of the node
  Together together_;
  int centre_ = -1;  ///< rank
  std::uint64_t next_ = 0;
  std::vector<PayloadError> wrong_;
  Times times_;
};

Case make_case(const char* operation, const std::string& transport, std::size_t bytes,
               const PlanInput& input) {
  const Topology& topology = input.topology;
  const int ranks = std::max(1, topology.max_local_size());
  const Spec load = whole(transport, bytes, ranks);
  const Shape shape = make_shape(load, input.memory_per_rank_bytes, link_rate_of(load, topology));
  Case c;
  c.suite = "p2p";
  c.operation = operation;
  c.name = std::string(operation) + "-" + std::to_string(bytes) + "-node-" + transport;
  c.title =
      std::string("bandwidth ") + operation + ", " + format_bytes(bytes) + ", inside nodes, " + transport;
  c.stage = Stage::pairs;
  c.not_applicable =
      shape.slots == 0 ? "more memory than a rank may use" : why_not(Scope::node, transport, topology);
  c.parameters = {{"mode", operation},      {"bytes", bytes},        {"scope", "node"},
                  {"transport", transport}, {"series", "pipelined"}, {"repetitions", shape.repetitions},
                  {"slots", shape.slots},   {"ranks", ranks}};
  if (const GpuBound bound = bound_of(whole(transport, bytes, 1), topology); *bound.by != 0)
    c.share = std::string("bound_share of ") + bound.by;
  if (!c.not_applicable.empty()) return c;
  const Timing timing = make_timing(load, shape, input.config, topology, static_cast<std::size_t>(ranks));
  const auto rounds = static_cast<double>(timing.rounds);
  c.serial = true;
  c.turns = ranks;
  c.seconds = timing.seconds / rounds;
  c.min_seconds = timing.min_seconds / rounds;
  c.overhead_seconds = timing.overhead_seconds;
  c.bytes = shape.arena_bytes();
  c.samples = timing.samples;
  c.entities = std::count_if(topology.ranks.begin(), topology.ranks.end(),
                             [](const RankPlace& place) { return place.local_size > 1; });
  return c;
}

/// Of the node in which this rank is: all its ranks, or in a retest those that are measured again.
std::vector<std::size_t> centres(Context& context) {
  const auto ranks = context.topology.ranks_of(context.topology.me().node);
  std::vector<std::size_t> all;
  const bool again = context.retest != nullptr && !context.retest->devices.empty();
  for (int visit = 0; visit < (again ? RetestOrder::visits : 1) && ranks.size() > 1; ++visit)
    for (const std::size_t k :
         context.random.child("turns" + std::to_string(visit)).permutation(ranks.size()))
      if (!again ||
          std::ranges::count(context.retest->devices, context.entities.device_of_rank(ranks[k])) > 0)
        all.push_back(k);
  return all;
}

}  // namespace

bool is_star(const Case& c) { return c.operation == one_to_all || c.operation == all_to_one; }

std::vector<Case> plan_stars(const PlanInput& input) {
  const auto has = [&](const char* option, const std::string& value) {
    return std::ranges::count(input.config.options.list(option), value) > 0;
  };
  std::vector<Case> cases;
  if (input.config.level < Level::standard && !input.config.options.has("p2p.modes")) return cases;
  std::size_t bytes = 0;  // the largest of those that fill a link, no more
  for (const std::size_t size : wanted_sizes(input.config, input.topology))
    if (bytes == 0 || size <= judged_bytes) bytes = size;
  for (const std::string& transport : wanted_transports(input.config, input.topology))
    for (const char* operation : {one_to_all, all_to_one})
      if (copies_between_peers(transport) && has("p2p.scopes", "node") && has("p2p.modes", operation))
        cases.push_back(make_case(operation, transport, bytes, input));
  return cases;
}

void run_star(const Case& c, Context& context) {
  const std::size_t bytes = c.parameters.at("bytes");
  const std::string transport = c.parameters.at("transport");
  const Spec load = whole(transport, bytes, c.parameters.at("ranks"));
  const Shape shape{load.mode, load.bytes, c.parameters.at("repetitions"), c.parameters.at("slots")};
  const GpuBound bound = bound_of(whole(transport, bytes, 1), context.topology);
  auto& bandwidth = context.record.declare(metrics().of(c.operation, "bandwidth"));
  if (*bound.by != 0 && bytes >= judged_bytes) bandwidth.judging->floor = results::Floor::gpu_bound;
  for (const char* name : {"repetitions", "message_bytes"})
    context.record.declare(metrics().of(c.operation, name));
  if (*bound.by != 0) declare_bound(metrics().of(c.operation, "bound_share"), bound, context.record);
  const Carrier carrier(load, shape, {}, context.node, context);
  context.record.parameter("path", carrier.path());
  if (carrier.remote() == nullptr)
    return context.record.set_state(results::CaseState::skip, "no access between the GPUs of a node");
  Star star(c, shape, carrier, context);
  for (const std::size_t centre : centres(context)) star.turn(centre);
  star.finish();
}

}  // namespace assay::p2p
