// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/memory_ops.hpp"
#include "suite/together.hpp"
#include "suites/memory/fault_text.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"

namespace assay::memory {
namespace {

constexpr std::size_t visited_bits = 64;

OnChip test_from(const std::string& name) {
  for (const OnChip test : {OnChip::l1, OnChip::shared, OnChip::l2})
    if (name == to_string(test)) return test;
  throw Error(ErrorKind::internal, "no such test of on-chip memory: " + name);
}

/// All rounds of one rank.
struct Rounds {
  std::uint64_t bytes = 0, errors = 0, rounds = 0;
  std::size_t multiprocessors = 0, least_visited = 0;
  std::vector<std::uint64_t> visited;  ///< bit map of the first round
  double timed_s = 0;

  void add(const OnChipResult& result) {
    if (rounds++ == 0) {
      visited.assign(max_multiprocessor_number / visited_bits, 0);
      for (const int sm : result.visited)
        visited.at(static_cast<std::size_t>(sm) / visited_bits) |= std::uint64_t{1} << (sm % 64);
      multiprocessors = result.multiprocessors;
      least_visited = result.visited.size();
    }
    least_visited = std::min(least_visited, result.visited.size());
    bytes += result.bytes;
    errors += result.errors;
  }
};

void report(const OnChipResult& result, const std::string& name, Context& context) {
  const double t = context.since_start(now_s());
  for (std::size_t i = 0; i < result.first.size(); ++i) {
    const kernels::ErrorRecord& e = result.first[i];
    const bool last = i + 1 == result.first.size();
    context.record.miscompare(
        {"", context.device_entity, e.index, e.expected, e.actual, e.reread, t, e.sm, e.warp, e.lane},
        last ? result.errors - i : 1);
  }
  const kernels::ErrorRecord& e = result.first.front();
  context.record.event("memory-fault",
                       std::to_string(result.errors) + " wrong words in on-chip memory (" + name +
                           "); first: word " + std::to_string(e.index) + ", SM " + std::to_string(e.sm) +
                           " warp " + std::to_string(e.warp) + " lane " + std::to_string(e.lane),
                       context.device_entity);
}

}  // namespace

void run_on_chip(const Case& c, Context& context) {
  const std::string name = c.parameters.at("onchip").get<std::string>();
  const OnChip test = test_from(name);
  for (const char* metric : {"errors", "coverage", "multiprocessors"})
    context.record.declare(metrics().of("onchip", metric));
  context.record.declare_integers("visited", {"word"}, {max_multiprocessor_number / visited_bits});
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  MemoryOps* ops = context.device.memory_ops();
  Together together(context.node);
  Rounds all;
  together.guarded([&] {
    if (ops == nullptr) throw Error(ErrorKind::device, "this device has no memory of its own inside");
    const double end = std::min(context.end_s, now_s() + c.seconds);
    do {
      const double begin = now_s();
      const OnChipResult result = ops->on_chip(test, mix64(context.random.key(), all.rounds));
      all.timed_s += now_s() - begin;
      all.add(result);
      if (result.errors > 0) report(result, name, context);
    } while (now_s() < end);
    auto& row = context.record.add_row(context.device_entity);
    row.values["errors"] = {static_cast<double>(all.errors)};
    row.values["coverage"] = {static_cast<double>(all.least_visited) /
                              static_cast<double>(all.multiprocessors)};
    row.values["multiprocessors"] = {static_cast<double>(all.multiprocessors)};
    row.integers["visited"] = all.visited;
    context.record.add_time(0, all.timed_s, 0);
    // What no block ran on was not tested: no result of this case is one for the whole GPU.
    if (all.least_visited < all.multiprocessors)
      throw Error(ErrorKind::device, "only " + std::to_string(all.least_visited) + " of " +
                                         std::to_string(all.multiprocessors) + " multiprocessors took part");
  });
  together.rethrow();
}

}  // namespace assay::memory
