// SPDX-License-Identifier: Apache-2.0
// A matrix product that is computed again and again, every result of which is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "device/device.hpp"
#include "workload/compare_bits.hpp"

namespace assay::workload {

/// Where the matrices of one product lie: `inputs` pairs (A, B), then `outputs` of C, each on its
/// own pages. Output slot s is computed from input pair s % inputs.
struct ProductLayout {
  std::size_t result_bytes = 0, stride = 0;  ///< of C; between matrices
  std::size_t inputs = 1, outputs = 2;

  std::size_t bytes() const noexcept { return (2 * inputs + outputs) * stride; }
  std::size_t a(std::size_t pair) const noexcept { return 2 * pair * stride; }
  std::size_t b(std::size_t pair) const noexcept { return (2 * pair + 1) * stride; }
  std::size_t c(std::size_t slot) const noexcept { return (2 * inputs + slot) * stride; }
};

/// The layout for matrices of one product that fits `limit_bytes`: as many pairs and results as exceed twice
/// `cache_bytes`, but 2 to 8, else one pair and two results. Eight that are smaller stay in the cache in
/// part: more of them would take longer to fill and to multiply once each than a short series lasts.
/// `bytes()` exceeds the limit if even one pair does not fit.
ProductLayout make_product_layout(NumType type, const GemmShape& shape, std::uint64_t cache_bytes,
                                  std::uint64_t limit_bytes, Output output = Output::native);

/// The layout with as many results as hold `flop` operations, but at most 128 and within the limit: so many
/// products can follow each other before the first of them must be checked.
ProductLayout with_batch(ProductLayout layout, double flop, const GemmShape& shape,
                         std::uint64_t limit_bytes);

/// Results are compared by digest with the first one of the same inputs; one that differs is computed once
/// more in another place, to find the wrong elements. Used by one thread at a time.
class VerifiedProduct {
 public:
  struct Hooks {
    /// Gets every result that has one to be compared with, before it is checked: for faults made on purpose.
    std::function<void(void* c, std::size_t count, std::size_t element_bytes)> inject;
    /// Wrong elements; `count` of them are what this one stands for. Index 0 and digests for values where
    /// none could be located.
    std::function<void(const WrongElement& element, std::uint64_t count)> wrong;
    /// Why a wrong result could not be located.
    std::function<void(const char* text)> lost;
  };

  /// Fills the inputs, uniform in [-1, 1), and poisons the results, in `layout.bytes()` of device memory at
  /// `base`.
  VerifiedProduct(Device& device, NumType type, const GemmShape& shape, const ProductLayout& layout,
                  std::byte* base, const RandomStream& inputs, Hooks hooks);

  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }
  double flops() const noexcept { return product_.flops(); }
  /// Queues that many products, in slots that rotate; they are complete after Device::synchronize.
  void queue(std::uint64_t repetitions);
  /// Checks all results since the last check, and poisons them: what afterwards writes nothing, or not all,
  /// cannot pass for the one before. Complete on return.
  void check();
  /// As check(), after each result has passed its injection point.
  void inject_and_check();
  /// One digest over the results of all input pairs: equal on all equal devices. Pairs not reached so far are
  /// computed now, or a slow device would look like a wrong one; nothing once `go_on`, which is asked before
  /// each of them, says no.
  std::optional<std::uint64_t> digest(const std::function<bool()>& go_on = {});

 private:
  std::byte* a(std::size_t pair) const { return base_ + layout_.a(pair); }
  std::byte* b(std::size_t pair) const { return base_ + layout_.b(pair); }
  std::byte* c(std::size_t slot) const { return base_ + layout_.c(slot); }
  std::size_t elements() const noexcept { return product_.m * product_.n; }
  std::size_t element_bytes() const noexcept { return result_size(type_, product_.output); }
  std::uint64_t digest_of(std::size_t slot) { return device_.digest(c(slot), layout_.result_bytes); }

  void compute(std::size_t pair, std::size_t slot);
  void poison(std::size_t slot);
  void report(std::map<std::size_t, std::uint64_t>& wrong);

  Device& device_;
  NumType type_;
  Matmul product_;
  std::size_t poison_step_;  ///< of the rows of C
  ProductLayout layout_;
  std::byte* base_;
  Hooks hooks_;
  std::vector<std::optional<std::uint64_t>> reference_;  ///< digest of the first C of each input pair
  std::vector<bool> written_;
  std::uint64_t next_ = 0;
  int reports_ = 0;
};

}  // namespace assay::workload
