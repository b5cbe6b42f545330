// SPDX-License-Identifier: Apache-2.0
// What the tests of the node-local suites run on: a group of one rank, a made-up cluster, and the host device
// with a hook after each operation that lets a test damage what it left.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "suite/suite.hpp"

namespace assay::fakes {

/// Calls `run` with more and more seconds for a case until it came far enough: on a busy machine few samples
/// fit into little time.
inline bool in_time(const std::function<bool(double seconds)>& run) {
  for (double seconds = 0.05; seconds < 30; seconds *= 8)
    if (run(seconds)) return true;
  return false;
}

/// The only rank of its group: every collective is a copy.
class SelfCommunicator : public Communicator {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 1; }
  std::string_view transport() const noexcept override { return "self"; }
  std::string path() const override { return "self"; }
  std::unique_ptr<Communicator> split(int color, int) override {
    return color < 0 ? nullptr : std::make_unique<SelfCommunicator>();
  }
  void send(const void*, std::size_t, int, int) override {}
  void recv(void*, std::size_t, int, int) override {}
  void isend(const void*, std::size_t, int, int, Request&) override {}
  void irecv(void*, std::size_t, int, int, Request&) override {}
  void wait_all(std::span<Request>) override {}
  void barrier() override {}
  void all_reduce(const void* in, void* out, std::size_t count, DataType type, ReduceOp) override {
    const std::size_t bytes = count * (type == DataType::int32 || type == DataType::fp32 ? 4 : 8);
    std::memmove(out, in, bytes);
  }
  void reduce_scatter(const void* in, void* out, std::size_t count, DataType type, ReduceOp op) override {
    all_reduce(in, out, count, type, op);
  }
  void all_gather(const void* in, void* out, std::size_t bytes) override { std::memmove(out, in, bytes); }
  void all_to_all(const void* in, void* out, std::size_t bytes) override { std::memmove(out, in, bytes); }
  void broadcast(void*, std::size_t, int) override {}
  void quiet_barrier() override {}
  std::vector<std::string> gather_text(const std::string& mine, int) override { return {mine}; }
  std::vector<std::string> all_gather_text(const std::string& mine) override { return {mine}; }
  std::string broadcast_text(const std::string& mine, int) override { return mine; }
};

/// The host device on one CPU, with hooks.
class HookedDevice final : public Device {
 public:
  std::function<void(void* c)> after_gemm;
  std::function<void(kernels::StreamOp op, double* a, std::size_t count)> after_stream;
  using SweepHook = std::function<void(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count)>;
  SweepHook before_sweep, after_sweep;
  std::optional<kernels::ErrorRecord> wrong_word;  ///< which each sweep that verifies tells of, too
  std::function<void(std::uint64_t* words, std::size_t count)> before_chase;
  int digests = 0;                             ///< calls of digest so far
  bool drop_gemm = false, drop_triad = false;  ///< do nothing, in no time

  bool gpu = false;      ///< says that it is one
  bool streams = false;  ///< says that it has some

  std::function<GemmAlgorithm()> tuned;  ///< what its library is fastest with; empty: it chooses by itself
  bool refuses_algorithms = false;

  std::string_view kind() const noexcept override { return gpu ? "cuda" : "host"; }
  bool has_own_memory() const noexcept override { return gpu; }
  bool has_streams() const noexcept override { return streams; }
  std::string description() const override { return "hooked"; }
  std::map<std::string, std::string> identity() const override { return {{"blas", "under test"}}; }
  int threads() const noexcept override { return 1; }
  void reserve(std::size_t bytes) override { host_->reserve(bytes); }
  std::span<std::byte> arena() noexcept override { return host_->arena(); }
  void synchronize() override {}
  bool supports(NumType type) const noexcept override { return host_->supports(type); }
  void matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) override {
    if (!drop_gemm) host_->matmul(type, shape, a, b, c);
    if (after_gemm) after_gemm(c);
  }
  std::optional<GemmAlgorithm> tune(NumType, const Matmul&, const void*, const void*, void*) override {
    return tuned ? std::optional(tuned()) : std::nullopt;
  }
  void set_algorithm(NumType, const Matmul&, const GemmAlgorithm&) override {
    if (refuses_algorithms) throw Error(ErrorKind::device, "this device cannot");
  }
  TrainOps* train_ops() noexcept override { return host_->train_ops(); }
  bool wrong_arithmetic = false;
  double fma_peak(NumType type, double) override {
    return wrong_arithmetic ? 0 : host_->fma_peak(type, 0.001);
  }
  void fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) override {
    host_->fill_uniform(type, data, count, key);
  }
  void fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) override {
    host_->fill_integer(type, data, count, key, limit);
  }
  std::uint64_t digest(const void* data, std::size_t bytes) override {
    ++digests;
    return host_->digest(data, bytes);
  }
  void stream(kernels::StreamOp op, double* a, const double* b, const double* c, std::size_t count) override {
    if (!drop_triad || op != kernels::StreamOp::triad) host_->stream(op, a, b, c, count);
    if (after_stream) after_stream(op, a, count);
  }
  ChaseTime chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) override {
    if (before_chase) before_chase(static_cast<std::uint64_t*>(memory), bytes / 8);
    return host_->chase(memory, bytes, steps, key);
  }
  void sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count,
             kernels::ErrorLog& log) override {
    if (before_sweep) before_sweep(sweep, words, count);
    host_->sweep(sweep, words, count, log);
    if (sweep.verify && wrong_word) log.add(*wrong_word);
    if (after_sweep) after_sweep(sweep, words, count);
  }
  int numa_of_thread(int) const noexcept override { return 0; }
  MemoryOps* memory_ops() override { return ops; }
  MemoryOps* ops = nullptr;  ///< what this device has of a GPU's memory

 private:
  std::unique_ptr<Device> host_ = make_host_device({allowed_cpus().front()}, {0}, false);
};

struct Shape {
  int nodes = 1, ranks_per_node = 1, numa_per_node = 1, cores_per_numa = 2;
  std::uint64_t llc_bytes = 32u << 20;  ///< of each NUMA domain; 0: not told
};

/// Nodes of `numa_per_node` sockets, a last-level cache each; ranks share the cores of their node in order.
inline Topology cluster(const Shape& shape) {
  Topology topology;
  for (int n = 0; n < shape.nodes; ++n) {
    Node node;
    node.hostname = "node" + std::to_string(n);
    node.id = node.hostname;
    node.id_source = "hostname";
    node.sockets = shape.numa_per_node;
    node.cores = node.pus = shape.numa_per_node * shape.cores_per_numa;
    node.memory_bytes = std::uint64_t{64} << 30;
    for (int d = 0; d < shape.numa_per_node; ++d) {
      NumaDomain domain;
      domain.os_index = d;
      for (int c = 0; c < shape.cores_per_numa; ++c) domain.cpus.push_back(d * shape.cores_per_numa + c);
      domain.memory_bytes = node.memory_bytes / static_cast<std::uint64_t>(shape.numa_per_node);
      node.numa.push_back(domain);
      if (shape.llc_bytes > 0) node.caches.push_back({3, shape.llc_bytes, domain.cpus});
    }
    for (int r = 0; r < shape.ranks_per_node; ++r) {
      RankPlace place;
      place.rank = static_cast<int>(topology.ranks.size());
      place.node = n;
      place.local_rank = r;
      place.local_size = shape.ranks_per_node;
      for (int c = 0; c < node.cores; ++c)
        if (shape.ranks_per_node >= node.cores ? r % node.cores == c
                                               : c * shape.ranks_per_node / node.cores == r)
          place.cpus.push_back(c);
      place.threads = static_cast<int>(place.cpus.size());
      place.shares_cpus = shape.ranks_per_node > node.cores;
      topology.ranks.push_back(place);
    }
    topology.nodes.push_back(node);
  }
  return topology;
}

/// A configuration of a level with some of a suite's options given; the others have the suite's defaults.
inline Config config_of(const Suite& suite, Level level,
                        const std::map<std::string, std::vector<std::string>>& given = {}) {
  Config config;
  config.level = level;
  config.duration_s = 3600;
  for (const OptionSpec& spec : suite.options()) {
    const auto it = given.find(spec.name);
    if (it != given.end())
      config.options.set(spec, it->second);
    else if (!spec.default_text.empty())
      config.options.set(spec, {spec.default_text});
  }
  return config;
}

/// One rank running one case.
class Bench {
 public:
  explicit Bench(Config config) : config_(std::move(config)) {}
  HookedDevice device;
  CaseRecord record;
  Communicator* node = nullptr;  ///< the node's ranks; null: this one only
  Injector* injector = nullptr;

  void run(Suite& suite, const Case& c) {
    with(c, [&](Context& context) { suite.run(c, context); });
  }
  /// `use` gets the context that the case would have.
  template <class Use>
  void with(const Case& c, const Use& use) {
    SelfCommunicator world, alone;
    Communicator& group = node != nullptr ? *node : alone;
    Context context{{config_, topology_, entities_, device, world, group, nullptr},
                    case_stream(config_.seed, c.path()),
                    now_s(),
                    now_s() + 60,
                    record,
                    entities_.device_of_rank(0),
                    injector,
                    c.retest.get()};
    use(context);
  }
  const Topology& topology() const { return topology_; }
  Topology& topology() { return topology_; }
  const EntityTable& entities() const { return entities_; }

 private:
  Config config_;
  Topology topology_ = cluster({});
  EntityTable entities_{topology_};
};

inline const Case* find(const std::vector<Case>& cases, const std::string& name) {
  for (const Case& c : cases)
    if (c.name == name) return &c;
  return nullptr;
}

inline bool legal_and_unique(const std::vector<Case>& cases) {
  std::set<std::string> seen;
  for (const Case& c : cases) {
    if (c.name.empty() || c.name.size() > 80) return false;
    if (c.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") != std::string::npos)
      return false;
    if (!seen.insert(c.path()).second) return false;
  }
  return !cases.empty();
}

inline double expected_s(const std::vector<Case>& cases) {
  double sum = 0;
  for (const Case& c : cases)
    if (c.not_applicable.empty()) sum += c.expected_s();
  return sum;
}

}  // namespace assay::fakes
