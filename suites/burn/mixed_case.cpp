// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <span>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/corrupt.hpp"
#include "measure/sizing.hpp"
#include "suite/device_power.hpp"
#include "suite/together.hpp"
#include "suites/burn/burn_cases.hpp"
#include "suites/burn/burn_metrics.hpp"
#include "suites/burn/burn_thread.hpp"
#include "suites/burn/burner.hpp"
#include "transport/gpu_links.hpp"
#include "workload/collective.hpp"

namespace assay::burn {
namespace {

/// Sums over all ranks, from the thread that may call MPI.
class Links {
 public:
  /// Messages of hosts as large as a sum of which takes no longer than a round may. NCCL sets up its
  /// algorithms with the first message of a size, so there a first one tells nothing.
  Links(const Mixed& m, Context& context, BurnRecorder& recorder)
      : context_(context), recorder_(recorder), arena_(context.device.arena().subspan(m.links_at())) {
    comm_ = context.gpu_links != nullptr ? nccl(context) : &context.world;
    if (comm_ == nullptr) comm_ = &context.world;
    context.record.parameter("path", comm_->path());
    const std::size_t bytes = comm_ == &context.world ? fitted_bytes(m) : m.links_bytes;
    make(bytes);
    context.record.parameter("summed_bytes", bytes);
  }

  Trial trial() {
    collective_->prepare(1);
    collective_->run(1);
    const RandomStream random = context_.random.child("trial").child(std::to_string(context_.world.rank()));
    const auto result = collective_->result(0);
    const auto before = collective_->check(0);
    const std::size_t index = random.below(0, result.size());
    flip_bit(context_.device, result.data(), index, sizeof(float),
             static_cast<unsigned>(random.below(1, 32)));
    const auto after = collective_->check(0);
    const bool found = after.count > before.count;
    return {1, found ? 1 : 0, found && (before.count > 0 || after.first_index == index) ? 1 : 0,
            static_cast<std::int64_t>(after.count - before.count)};
  }

  /// A round of about 20 ms, agreed by all when the first one was timed; of as many sums as there are places,
  /// so that each is checked.
  Work round() {
    collective_->prepare(repetitions_);
    context_.world.barrier();
    const double begin = now_s();
    collective_->run(repetitions_);
    const double end = now_s();
    collective_->verify();
    for (; told_ < collective_->wrong().size(); ++told_) {
      const auto& bad = collective_->wrong()[told_];
      recorder_.wrong({"", recorder_.entity(), bad.errors.first_index, bad.errors.expected, bad.errors.actual,
                       bad.reread, recorder_.since_start(now_s())},
                      bad.errors.count);
    }
    const double bytes = static_cast<double>(repetitions_) *
                         static_cast<double>(collective_->counted_bytes()) *
                         workload::bus_factor(workload::Op::all_reduce, comm_->size());
    return {begin, end, bytes};
  }
  void fit(double round_s) {
    const double slowest_s = context_.world.max(round_s) / static_cast<double>(repetitions_);
    repetitions_ =
        static_cast<std::uint64_t>(std::clamp(0.02 / slowest_s, 1.0, static_cast<double>(links_slots)));
  }

 private:
  /// Anew, so that the first run after it writes the first slot.
  void make(std::size_t bytes) {
    collective_.emplace(*comm_, workload::Op::all_reduce, bytes, arena_, links_slots,
                        context_.random.child("links").key(), &context_.device);
    collective_->set_injection_point([this](std::span<float> result) {
      recorder_.injection_point("allreduce", result.data(), result.size(), sizeof(float));
    });
  }
  /// Collective.
  std::size_t fitted_bytes(const Mixed& m) {
    Sizing sizing({m.links_bytes, 1}, m.round_s(), 3 * m.round_s());
    make(sizing.next().bytes);
    sum_s();  // sets up connections
    for (; !sizing.done(); sizing.took(context_.world.max(sum_s()))) make(sizing.next().bytes);
    if (!sizing.full_size() && context_.world.rank() == 0)
      recorder_.event("burn-cut-short",
                      fmt::format("sums of {} instead of {} KiB, which take {:.3g} s",
                                  sizing.fitted().bytes >> 10, m.links_bytes >> 10, sizing.seconds()));
    return sizing.fitted().bytes;
  }
  /// Of one sum that is not looked at, on this rank.
  double sum_s() {
    collective_->prepare(1);
    context_.world.barrier();
    const double begin = now_s();
    collective_->run(1);
    return now_s() - begin;
  }

  static Communicator* nccl(Context& context) {
    std::string why;
    // The same library on every node is a matter of the inventory; here all must choose alike.
    const bool usable = !context.gpu_links->transports().nccl_version(why).empty();
    if (context.world.min(usable ? 1 : 0) == 0) return nullptr;
    return &context.gpu_links->nccl(GpuLinks::Scope::world, context.deadline_s);
  }

  Context& context_;
  BurnRecorder& recorder_;
  std::span<std::byte> arena_;
  Communicator* comm_ = nullptr;
  std::optional<workload::Collective> collective_;
  std::uint64_t repetitions_ = 1;
  std::size_t told_ = 0;
};

/// CPUs for the host beside a GPU: all but two of them, which feed the GPU's queues, where there are more.
std::unique_ptr<Device> host_beside(const Context& context) {
  const RankPlace& me = context.topology.me();
  std::vector<int> cpus(me.cpus.begin(), me.cpus.end());
  if (cpus.size() > 3) cpus.erase(cpus.begin(), cpus.begin() + 2);
  std::vector<int> numa;
  for (const int cpu : cpus) numa.push_back(context.topology.my_node().numa_of({cpu}));
  if (cpus.empty()) cpus = {0}, numa = {-1};
  return make_host_device(cpus, numa, !me.shares_cpus && !me.cpus.empty());
}

/// A host that multiplies and checks its memory in turns.
class HostBurner final : public Burner {
 public:
  HostBurner(const Context& context, const Mixed& m, BurnRecorder& recorder)
      : round_s_(m.round_s()),
        fill_s_(m.fill_s()),
        recorder_(recorder),
        random_(context.random.child("host")),
        device_(host_beside(context)) {}
  void prepare() override {
    constexpr std::size_t n = 1024, memory = std::size_t{64} << 20;
    const workload::ProductLayout layout =
        workload::make_product_layout(NumType::fp64, {n, n, n}, 0, ~std::uint64_t{0});
    const std::size_t product = (layout.bytes() + memory - 1) / memory * memory;
    device_->reserve(product + memory);
    std::byte* base = device_->arena().data();
    compute_.emplace(device_->second_stream(), NumType::fp64, n, layout, nullptr, base,
                     random_.child("product"), round_s_, recorder_);
    memory_.emplace(device_->second_stream(), reinterpret_cast<std::uint64_t*>(base + product),
                    memory / sizeof(std::uint64_t), random_.child("memory"), round_s_, fill_s_, recorder_);
    compute_->prepare();
    memory_->prepare();
  }
  Trial trial() override {
    Trial trial = compute_->trial();
    trial.add(memory_->trial());
    return trial;
  }
  double round() override {
    memory_->round();
    return compute_->round();
  }
  void finish() override { memory_->finish(); }

 private:
  double round_s_, fill_s_;
  BurnRecorder& recorder_;
  RandomStream random_;
  std::unique_ptr<Device> device_;
  std::optional<ComputeBurner> compute_;
  std::optional<MemoryBurner> memory_;
};

std::unique_ptr<Burner> make_burner(Component part, const Mixed& m, const GemmAlgorithm* algorithm,
                                    Context& context, BurnRecorder& recorder) {
  std::byte* base = context.device.arena().data();
  if (part == Component::host) return std::make_unique<HostBurner>(context, m, recorder);
  auto stream = context.device.second_stream();
  if (stream == nullptr) throw Error(ErrorKind::device, "burn: this device has one queue only");
  if (part == Component::compute)
    return std::make_unique<ComputeBurner>(std::move(stream), m.type, m.n, m.product(), algorithm, base,
                                           context.inputs().child("compute"), m.round_s(), recorder);
  return std::make_unique<MemoryBurner>(std::move(stream),
                                        reinterpret_cast<std::uint64_t*>(base + m.memory_at()),
                                        m.memory_bytes / sizeof(std::uint64_t),
                                        context.random.child("memory"), m.round_s(), m.fill_s(), recorder);
}

class MixedRun {
 public:
  MixedRun(const Case& c, const GemmAlgorithm* algorithm, Context& context)
      : m_(mixed_of(c)),
        algorithm_(algorithm),
        context_(context),
        together_(context.world),
        recorder_(context, context.device_entity),
        host_recorder_(context, context.entities.node(context.topology.me().node)),
        power_(context, 0.1) {
    m_.fill_rate = fill_rate(context.topology);
    if (context.retest == nullptr || m_.duration_s <= most_retest_s) return;
    m_.duration_s = most_retest_s;
    m_.ramp_s = std::min(m_.ramp_s, most_retest_s / 10);
  }

  void run() {
    const double setup = now_s();
    set_up();
    if (together_.any(false)) {
      // If one rank cannot burn, none does.
      threads_.clear();
      power_.finish();
      return end();
    }
    context_.record.add_time(now_s() - setup, 0, 0);
    burn();
    report();
    end();
  }

 private:
  void set_up() {
    together_.guarded([&] { context_.device.reserve(m_.arena_bytes()); });
    together_.guarded([&] {
      Trial trial;
      for (const Component part : m_.parts) {
        if (part == Component::links) continue;
        // One after the other: what results are compared with is computed while nothing else runs.
        threads_.push_back(std::make_unique<BurnThread>(part, [this, part] {
          return make_burner(part, m_, algorithm_, context_,
                             part == Component::host ? host_recorder_ : recorder_);
        }));
        threads_.back()->wait_ready();
        if (threads_.back()->failed()) {
          threads_.back()->join();
          std::rethrow_exception(threads_.back()->failure);
        }
        trial.add(threads_.back()->trial);
      }
      trial_ = trial;
    });
    if (together_.any(false) || !m_.has(Component::links)) return;
    // Collective: a rank that fails here alone is found by those who wait for it.
    links_.emplace(m_, context_, recorder_);
    trial_.add(links_->trial());
    const double begin = now_s();
    links_->round();
    links_->fit(now_s() - begin);
  }

  void burn() {
    // One clock for all: that of rank 0, counted from the start of the run.
    constexpr double head_start_s = 0.2;
    const double zero =
        context_.world.max(context_.since_start(now_s())) + head_start_s - context_.since_start(0.0);
    const Span mine = staggered(position(), context_.world.size(), m_.duration_s, m_.ramp_s);
    common_ = all_burn(m_.duration_s, m_.ramp_s);
    common_ = {common_.begin_s + zero, common_.end_s + zero};
    for (const auto& thread : threads_) thread->start({mine.begin_s + zero, mine.end_s + zero});
    for (Next next = agree(mine.end_s + zero); next != Next::end; next = agree(mine.end_s + zero)) {
      context_.count_batch();
      if (next == Next::sum)
        sums_.push_back(links_->round());
      else
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (const auto& thread : threads_) {
      thread->stop();
      thread->join();
    }
    energy_ = power_.finish();
  }

  enum class Next { wait, sum, end };
  /// Where sums are made all do the same, since none can sum alone: they sum while all burn, and wait for the
  /// last to end. A part that failed ends it for all.
  Next agree(double end_s) {
    const double now = now_s();
    const bool failed =
        std::any_of(threads_.begin(), threads_.end(), [](const auto& t) { return t->failed(); });
    if (!links_) return failed || now >= end_s ? Next::end : Next::wait;
    double state[3] = {failed ? 1.0 : 0.0, now < end_s ? 1.0 : 0.0,
                       now < common_.begin_s || now >= common_.end_s ? 1.0 : 0.0};
    context_.world.all_reduce(state, state, 3, DataType::fp64, ReduceOp::max);
    if (state[0] > 0 || state[1] == 0) return Next::end;
    return state[2] > 0 ? Next::wait : Next::sum;
  }

  /// Ranks of a node follow each other.
  int position() const {
    int before = 0;
    const int node = context_.topology.me().node;
    for (int n = 0; n < node; ++n) before += static_cast<int>(context_.topology.ranks_of(n).size());
    return before + context_.topology.me().local_rank;
  }

  void report() {
    const double seconds = common_.end_s - common_.begin_s;
    constexpr double shortest_window_s = 0.25;  // ten rounds of a part
    const auto windows =
        static_cast<std::size_t>(std::clamp(std::floor(seconds / shortest_window_s), 4.0, 600.0));
    for (const auto& thread : threads_)
      if (thread->failed()) together_.guarded([&] { std::rethrow_exception(thread->failure); });
    const std::uint64_t wrong = recorder_.hand_over();
    host_recorder_.hand_over();
    record_trial(trial_, context_);
    if (together_.failed()) return;
    auto& row = context_.record.add_row(context_.device_entity);
    const double width = seconds / static_cast<double>(windows);
    for (std::size_t i = 0; i < windows; ++i) {
      row.t.push_back(context_.since_start(common_.begin_s + static_cast<double>(i) * width));
      row.block.push_back(static_cast<std::int32_t>(3 * i / windows));
    }
    for (const auto& thread : threads_) {
      row.values[metric_of(thread->part())] = window_rates(thread->work, common_, windows);
      if (thread->part() == Component::compute) {
        row.integers["digest"] = {thread->digest};
        context_.tell_arithmetic(row);
        row.integers["size"] = {thread->size};
      }
      if (thread->part() == Component::memory) row.integers["memory_bytes"] = {thread->size};
    }
    // A sum is over when all have made it: what counts is the time that it took, not the time between.
    if (links_) row.values[metric_of(Component::links)] = rates_of_work(sums_, common_, windows);
    row.values["errors"] = {static_cast<double>(wrong)};
    row.values["power"] = {mean_power_w(energy_, common_.begin_s, common_.end_s)};
    context_.record.add_time(0, seconds, 0);
  }

  void end() { together_.rethrow(); }

  Mixed m_;
  const GemmAlgorithm* algorithm_;
  Context& context_;
  Together together_;
  BurnRecorder recorder_, host_recorder_;  ///< of the device, and of the host beside it
  DevicePower power_;
  std::vector<std::unique_ptr<BurnThread>> threads_;
  std::optional<Links> links_;
  Trial trial_;
  Span common_;
  std::vector<Work> sums_;
  EnergyTrace energy_;
};

}  // namespace

void run_mixed(const Case& c, const GemmAlgorithm* algorithm, Context& context) {
  using results::Role;
  const Mixed m = mixed_of(c);
  // On a host all parts take turns on its cores: what is left to sweeps and sums beside the products is
  // chance.
  const bool turns = !context.device.has_own_memory() && m.has(Component::compute);
  const auto role = [&](Component part) {
    return turns && part != Component::compute ? Role::covariate : Role::metric;
  };
  for (const Component part : m.parts)
    context.record.declare(metrics().of("mixed", metric_of(part))).role = role(part);
  for (const char* name : {"errors", "power"}) context.record.declare(metrics().of("mixed", name));
  if (m.has(Component::compute)) {
    for (const char* name : {"digest", "size"}) context.record.declare_integers(name, {}, {});
    context.declare_arithmetic();
  }
  if (m.has(Component::memory)) context.record.declare_integers("memory_bytes", {}, {});
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  context.record.parameter("inputs", fmt::format("{:016x}", context.inputs().key()));
  if (algorithm != nullptr) {
    context.record.parameter("algorithm", algorithm->name);
    context.record.parameter("algorithms_tried", algorithm->candidates);
  }
  MixedRun(c, algorithm, context).run();
}

}  // namespace assay::burn
