// SPDX-License-Identifier: Apache-2.0
#include "workload/verified_product.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "kernels/digest.hpp"

namespace assay::workload {

ProductLayout make_product_layout(NumType type, const GemmShape& shape, std::uint64_t cache_bytes,
                                  std::uint64_t limit_bytes, Output output) {
  constexpr std::size_t page = 4096;
  ProductLayout layout;
  layout.result_bytes = shape.m * shape.n * result_size(type, output);
  const std::size_t largest =
      std::max({layout.result_bytes, shape.m * shape.k * size_of(type), shape.k * shape.n * size_of(type)});
  // One page more than needed: matrices a power of two apart would all start in the same cache sets.
  layout.stride = (largest + page - 1) / page * page + page;
  const std::size_t set = 3 * layout.stride;
  const auto wanted = std::clamp<std::uint64_t>((2 * cache_bytes + set - 1) / set, 2, 8);
  for (std::uint64_t sets = wanted; sets >= 2; --sets)
    if (sets * set <= limit_bytes) {
      layout.inputs = layout.outputs = sets;
      return layout;
    }
  layout.inputs = 1;
  layout.outputs = 2;
  return layout;
}

ProductLayout with_batch(ProductLayout layout, double flop, const GemmShape& shape,
                         std::uint64_t limit_bytes) {
  constexpr double most = 128;
  const auto wanted = static_cast<std::size_t>(std::clamp(std::ceil(flop / shape.flops()), 1.0, most));
  while (layout.outputs < wanted) {
    layout.outputs += layout.inputs;
    if (layout.bytes() > limit_bytes) {
      layout.outputs -= layout.inputs;
      break;
    }
  }
  return layout;
}

VerifiedProduct::VerifiedProduct(Device& device, NumType type, const GemmShape& shape,
                                 const ProductLayout& layout, std::byte* base, const RandomStream& inputs,
                                 Hooks hooks)
    : device_(device),
      type_(type),
      product_(plain_product(type, shape)),
      poison_step_(kernels::poison_step(shape.n * element_bytes())),
      layout_(layout),
      base_(base),
      hooks_(std::move(hooks)),
      reference_(layout.inputs),
      written_(layout.outputs, false) {
  for (std::size_t i = 0; i < layout.inputs; ++i) {
    const RandomStream random = inputs.child("pair" + std::to_string(i));
    device.fill_uniform(type, a(i), shape.m * shape.k, random.child("a").key());
    device.fill_uniform(right_operand(type), b(i), shape.k * shape.n, random.child("b").key());
  }
  for (std::size_t s = 0; s < layout.outputs; ++s) poison(s);
  device.synchronize();
}

void VerifiedProduct::compute(std::size_t pair, std::size_t slot) {
  device_.matmul(type_, product_, a(pair), b(pair), c(slot));
}

void VerifiedProduct::queue(std::uint64_t repetitions) {
  for (std::uint64_t i = 0; i < repetitions; ++i) {
    const std::size_t slot = next_++ % layout_.outputs;
    compute(slot % layout_.inputs, slot);
    written_[slot] = true;
  }
}

void VerifiedProduct::poison(std::size_t slot) {
  device_.poison(c(slot), layout_.result_bytes, poison_step_);
}

void VerifiedProduct::check() {
  std::vector<std::size_t> slots;
  std::vector<const void*> results;
  for (std::size_t slot = 0; slot < layout_.outputs; ++slot)
    if (written_[slot]) {
      slots.push_back(slot);
      results.push_back(c(slot));
    }
  written_.assign(layout_.outputs, false);
  const auto digests = device_.digests(results, layout_.result_bytes);
  std::map<std::size_t, std::uint64_t> wrong;  // digests by slot
  for (std::size_t i = 0; i < slots.size(); ++i) {
    auto& reference = reference_[slots[i] % layout_.inputs];
    if (!reference) reference = digests[i];
    if (digests[i] != *reference) wrong[slots[i]] = digests[i];
  }
  while (!wrong.empty()) report(wrong);
  for (const std::size_t slot : slots) poison(slot);
  device_.synchronize();
}

void VerifiedProduct::inject_and_check() {
  // Only results that have one to be compared with: without it the first would be taken for the right one.
  for (std::size_t slot = 0; slot < layout_.outputs; ++slot)
    if (written_[slot] && reference_[slot % layout_.inputs])
      hooks_.inject(c(slot), elements(), element_bytes());
  check();
}

std::optional<std::uint64_t> VerifiedProduct::digest(const std::function<bool()>& go_on) {
  std::uint64_t all = 0;
  for (std::size_t pair = 0; pair < layout_.inputs; ++pair) {
    if (!reference_[pair]) {
      if (go_on && !go_on()) return std::nullopt;
      compute(pair, pair);
      device_.synchronize();
      reference_[pair] = digest_of(pair);
    }
    all = mix64(all, *reference_[pair]);
  }
  return all;
}

/// The first of `wrong`, which leaves it, as does another one whose place has to serve as scratch.
void VerifiedProduct::report(std::map<std::size_t, std::uint64_t>& wrong) {
  const auto [slot, digest] = *wrong.begin();
  wrong.erase(wrong.begin());
  const std::size_t pair = slot % layout_.inputs;
  const std::uint64_t reference = *reference_[pair];
  const WrongElement somewhere{0, reference, digest, digest};
  constexpr int searches = 8;
  if (++reports_ > searches) return hooks_.wrong(somewhere, 1);
  std::size_t scratch = (slot + 1) % layout_.outputs;
  while (wrong.contains(scratch)) scratch = (scratch + 1) % layout_.outputs;
  if (scratch == slot) {
    const auto other = wrong.extract(wrong.begin());
    scratch = other.key();
    const std::uint64_t right = *reference_[scratch % layout_.inputs];
    hooks_.wrong({0, right, other.mapped(), other.mapped()}, 1);
  }
  compute(pair, scratch);
  device_.synchronize();
  const WrongElements found =
      compare_bits_on_device(device_, c(slot), c(scratch), elements(), element_bytes());
  const bool repeats = digest_of(scratch) == reference;
  poison(scratch);
  if (!repeats || found.count == 0) {
    hooks_.lost(repeats ? "a result differs from the first one of its inputs and cannot be located: computed "
                          "again it is right"
                        : "a result differs from the first one of its inputs and cannot be located: computed "
                          "again it is different once more");
    return hooks_.wrong(somewhere, 1);
  }
  for (std::size_t i = 0; i < found.first.size(); ++i)
    hooks_.wrong(found.first[i], i + 1 == found.first.size() ? found.count - i : 1);
}

}  // namespace assay::workload
