// SPDX-License-Identifier: Apache-2.0
// The parts of a burn: each keeps something busy in rounds of verified work.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "suite/suite.hpp"
#include "suites/burn/burn_plan.hpp"
#include "workload/verified_product.hpp"

namespace assay::burn {

/// What the parts of a rank tell while they burn, each from its own thread, and the faults made on purpose
/// that reach them.
class BurnRecorder {
 public:
  /// `entity`: whose work is checked. Faults made on purpose hit devices only.
  BurnRecorder(Context& context, int entity) : context_(context), entity_(entity) {}

  /// See Context.
  void injection_point(std::string_view target, void* data, std::size_t count, std::size_t element_bytes);
  double apply_injected_delay(double begin_s, std::uint64_t repetitions, bool warmup = false);
  /// `count`: wrong values that this one stands for.
  void wrong(const results::Miscompare& record, std::uint64_t count);
  void event(std::string kind, std::string text);
  double since_start(double t) const { return context_.since_start(t); }
  int entity() const noexcept { return entity_; }

  /// Into the record, when all parts are through. The number of wrong values.
  std::uint64_t hand_over();

 private:
  bool faulty() const noexcept { return context_.injector != nullptr && entity_ == context_.device_entity; }

  Context& context_;
  int entity_;
  std::mutex mutex_;
  struct Wrong {
    results::Miscompare record;
    std::uint64_t count;
  };
  std::vector<Wrong> wrong_;
  std::vector<std::pair<std::string, std::string>> events_;
  std::uint64_t wrong_count_ = 0;
};

/// Values corrupted on purpose before a burn, to see that its checks find them.
struct Trial {
  int injected = 0, caught = 0, located = 0;
  std::int64_t counted = 0;
  void add(const Trial& other);
};
/// Throws nothing: a check that misses makes the run INCONCLUSIVE.
void record_trial(const Trial& trial, Context& context);

/// One part on one rank. All is called by one thread.
class Burner {
 public:
  virtual ~Burner() = default;
  /// Makes ready and computes what results are compared with, while nothing burns.
  virtual void prepare() = 0;
  virtual Trial trial() = 0;
  /// A round of some ten milliseconds: FLOP or bytes, all of them checked.
  virtual double round() = 0;
  /// After the last round: whatever was not looked at since.
  virtual void finish() {}
};

/// Products of uniform random matrices, every result compared.
class ComputeBurner final : public Burner {
 public:
  /// `device` may be a second stream of the one whose memory `base` is in.
  /// `algorithm` null: as the library chooses. A product of a host that would take much longer than
  /// `round_s` is replaced by a smaller one, see fitted_size.
  ComputeBurner(std::unique_ptr<Device> device, NumType type, std::size_t n,
                const workload::ProductLayout& layout, const GemmAlgorithm* algorithm, std::byte* base,
                const RandomStream& inputs, double round_s, BurnRecorder& recorder);
  void prepare() override;
  Trial trial() override;
  double round() override;
  /// Of a smaller product there is nothing to compare it with.
  std::uint64_t digest() { return n_ == planned_n_ ? *product_->digest() : results::no_digest; }
  std::size_t size() const noexcept { return n_; }

 private:
  void fit();
  void make();
  double single_s();

  std::unique_ptr<Device> device_;
  NumType type_;
  std::size_t n_, planned_n_;
  workload::ProductLayout layout_;
  const GemmAlgorithm* algorithm_;
  std::byte* base_;
  RandomStream inputs_;
  double round_s_;
  BurnRecorder& recorder_;
  std::uint64_t queued_ = 1;  ///< products of a round
  std::optional<workload::VerifiedProduct> product_;
};

/// The hooks of a product that is checked at a recorder.
workload::VerifiedProduct::Hooks hooks_at(BurnRecorder& recorder);
/// Changes one bit of a result, which the next check must find, there and once. The product has results to be
/// compared with already (digest()) and gets its `usual` hooks back.
Trial try_product(workload::VerifiedProduct& product, Device& device, const RandomStream& random,
                  workload::VerifiedProduct::Hooks usual);

/// Random words all over a region, chunk by chunk: every word is compared with what was written the last
/// time, and replaced.
class MemoryBurner final : public Burner {
 public:
  /// Of the region as much as a device as slow as a first part shows writes in `fill_s`.
  MemoryBurner(std::unique_ptr<Device> device, std::uint64_t* words, std::size_t count,
               const RandomStream& random, double round_s, double fill_s, BurnRecorder& recorder);
  void prepare() override;
  Trial trial() override;
  double round() override;
  void finish() override;
  std::uint64_t bytes() const noexcept { return count_ * sizeof(std::uint64_t); }

 private:
  void fit();
  std::size_t chunk_begin(std::size_t chunk) const noexcept;
  kernels::Data data(std::uint64_t generation) const noexcept;
  /// Bytes moved.
  double sweep(std::size_t chunk, bool verify, bool write);

  std::unique_ptr<Device> device_;
  std::uint64_t* words_;
  std::size_t count_, chunks_ = 1;
  RandomStream random_;
  double round_s_, fill_s_;
  BurnRecorder& recorder_;
  std::vector<std::uint64_t> generation_;  ///< of each chunk: how often it was written
  std::size_t next_ = 0;
  int told_ = 0;
};

}  // namespace assay::burn
