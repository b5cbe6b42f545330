// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "measure/sizing.hpp"
#include "suite/suite.hpp"
#include "suites/burn/schedule.hpp"
#include "workload/verified_product.hpp"

namespace assay::burn {

/// What is kept busy at the same time. On hosts compute and memory are the host, so only GPUs have that part.
enum class Component { compute, memory, links, host };
inline constexpr Component all_parts[] = {Component::compute, Component::memory, Component::links,
                                          Component::host};
const char* to_string(Component part) noexcept;
/// What its rate is called, and the unit.
const char* metric_of(Component part) noexcept;
const char* unit_of(Component part) noexcept;

/// Sums whose inputs and results are kept at the same time.
inline constexpr std::size_t links_slots = 4;

/// Cap on the time of a retest. It measures a suspected part again under the same load, which takes as many
/// windows as are asked for and no second soak.
inline constexpr double most_retest_s = 60;

/// A case as its parameters describe it.
struct Mixed {
  std::vector<Component> parts;
  NumType type = NumType::fp64;
  std::size_t n = 0;             ///< of the products
  std::size_t results = 2;       ///< of products that follow each other before they are checked
  std::size_t memory_bytes = 0;  ///< kept under test
  std::size_t links_bytes = 0;   ///< of one all-reduce
  double fill_rate = 5e8;        ///< B/s at which the memory is surely filled, and checked
  double duration_s = 0, ramp_s = 0;

  /// Of a round of a part, which a device as slow as a probe shows gets smaller ones for.
  double round_s() const noexcept { return std::min(1.0, duration_s / 20); }
  /// What filling the memory may take, and checking it at the end: in the plan are both and a second.
  double fill_s() const noexcept {
    return round_s() + size_patience * static_cast<double>(memory_bytes) / fill_rate;
  }
  bool has(Component part) const noexcept;
  workload::ProductLayout product() const {
    const GemmShape shape{n, n, n};
    return workload::with_batch(workload::make_product_layout(type, shape, 0, ~std::uint64_t{0}),
                                static_cast<double>(results) * shape.flops(), shape, ~std::uint64_t{0});
  }
  /// Arena: products, then the memory under test, then the buffers of the links, each on 2 MiB of its own.
  std::size_t memory_at() const;
  std::size_t links_at() const;
  std::size_t arena_bytes() const;
};
Mixed mixed_of(const Case& c);
/// B/s at which the CPUs of a rank surely fill their memory while all ranks of the node do: what even a slow
/// core reaches, of each thread, up to a share of 10 GB/s of each socket.
double fill_rate(const Topology& topology);

struct Pulse {
  PulseTrain train;
  NumType type = NumType::fp64;
  std::size_t n = 0;  ///< largest
  int nodes = 1;      ///< the first so many take part
};
Pulse pulse_of(const Case& c);

std::vector<OptionSpec> burn_options();
std::vector<Case> plan_cases(const PlanInput& input);

}  // namespace assay::burn
