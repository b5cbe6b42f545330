// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "device/corrupt.hpp"
#include "kernels/gemm_golden.hpp"
#include "kernels/number.hpp"
#include "suites/gemm/gemm_metrics.hpp"
#include "suites/gemm/gemm_work.hpp"
#include "workload/compare_bits.hpp"

namespace assay::gemm {
namespace {

void golden(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c, std::size_t n) {
  kernels::host::gemm_golden_fp32(a.data(), b.data(), c.data(), n, n, n, 0, n);
}
void golden(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& c,
            std::size_t n) {
  kernels::host::gemm_golden_fp64(a.data(), b.data(), c.data(), n, n, n, 0, n);
}

/// The largest |input| for which every partial sum of n = 512 products is exact in any order: n limit^2 <=
/// 2^24 (2^53). Tensor cores keep fewer bits while they add: fp16 and bf16 stay below 2^19, and fp8 below
/// 2^12, since Hopper's are said to keep 14 bits.
int input_limit(NumType type) {
  switch (type) {
    case NumType::fp64: return 1 << 20;
    case NumType::fp16:
    case NumType::bf16: return 31;
    case NumType::fp8:
    case NumType::fp8_fast:
    case NumType::fp8_e5m2: return 2;
    case NumType::fp32:
    case NumType::tf32:
    case NumType::int8: break;
  }
  return 127;
}

/// One element as a number; exact for the integers of this pass.
template <class T>
T decoded(NumType type, const std::byte* from) {
  const auto as = [&](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  switch (type) {
    case NumType::fp64: return static_cast<T>(as(0.0));
    case NumType::fp32:
    case NumType::tf32: return static_cast<T>(as(0.0f));
    case NumType::fp16: return static_cast<T>(kernels::Fp16::decode(as(std::uint16_t{0})));
    case NumType::bf16: return static_cast<T>(kernels::Bf16::decode(as(std::uint16_t{0})));
    case NumType::fp8:
    case NumType::fp8_fast: return static_cast<T>(kernels::Fp8::decode(as(std::uint8_t{0})));
    case NumType::fp8_e5m2: return static_cast<T>(kernels::Fp8E5m2::decode(as(std::uint8_t{0})));
    case NumType::int8: return static_cast<T>(as(std::int8_t{0}));
  }
  return T{};
}

/// The n x n operand at `data` as the golden multiplies it, [row, column].
template <class T>
std::vector<T> fetch(Device& device, NumType type, const void* data, std::size_t n, bool transposed) {
  const std::size_t element = size_of(type);
  std::vector<std::byte> raw(n * n * element);
  device.copy_to_host(raw.data(), data, raw.size());
  std::vector<T> out(n * n);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t c = 0; c < n; ++c)
      out[r * n + c] = decoded<T>(type, raw.data() + (transposed ? c * n + r : r * n + c) * element);
  return out;
}

/// The golden as the device stores it.
template <class T>
std::vector<std::byte> stored(NumType type, const std::vector<T>& c) {
  std::vector<std::byte> out(c.size() * result_size(type, Output::exact));
  if (type != NumType::int8) {
    std::memcpy(out.data(), c.data(), out.size());
    return out;
  }
  for (std::size_t i = 0; i < c.size(); ++i) {
    const auto value = static_cast<std::int32_t>(c[i]);
    std::memcpy(out.data() + i * sizeof(value), &value, sizeof(value));
  }
  return out;
}

struct Matrices {
  std::byte *a, *b, *c;
  std::size_t count;
};

void add_miscompares(const workload::WrongElements& wrong, Context& context) {
  const double t = context.since_start(now_s());
  for (std::size_t i = 0; i < wrong.first.size(); ++i) {
    const workload::WrongElement& w = wrong.first[i];
    const bool last = i + 1 == wrong.first.size();
    context.record.miscompare({"", context.device_entity, w.index, w.expected, w.actual, w.reread, t},
                              last ? wrong.count - i : 1);
  }
}

/// Detection test: one flipped bit of C must be caught, located and counted as exactly one, and be gone when
/// restored. C is overwritten by what it must be: among many wrong elements the flipped one could be wrong
/// before, or beyond those that are recorded. Memory that does not keep it is told apart by its count.
void selftest(const Matrices& m, const void* expected, std::size_t element, Context& context) {
  context.device.copy_to_device(m.c, expected, m.count * element);
  const std::uint64_t already = workload::compare_bits(context.device, m.c, expected, m.count, element).count;
  const RandomStream random = context.random.child("selftest");
  const std::size_t index = random.below(0, m.count);
  const auto bit = static_cast<unsigned>(random.below(1, 8 * element));
  flip_bit(context.device, m.c, index, element, bit);
  const workload::WrongElements wrong =
      workload::compare_bits(context.device, m.c, expected, m.count, element);
  flip_bit(context.device, m.c, index, element, bit);
  const bool located =
      std::any_of(wrong.first.begin(), wrong.first.end(), [&](const auto& w) { return w.index == index; });
  const auto caught = static_cast<std::int64_t>(wrong.count) - static_cast<std::int64_t>(already);
  results::SelftestRow row{"gemm",          1,      wrong.count > already ? 1 : 0,
                           located ? 1 : 0, caught, context.device_entity};
  if (workload::compare_bits(context.device, m.c, expected, m.count, element).count != already)
    row.counted = -1;
  context.record.selftest(row);
}

struct Times {
  double timed_s = 0, verify_s = 0;
};

/// New inputs, one product, every element compared. T: what the golden is computed in.
template <class T>
void run_round(const GemmWork& work, int round, const workload::ProductLayout& layout, CaseRecord::Row& row,
               std::uint64_t& digest, Times& times, Context& context) {
  const std::size_t n = work.n, count = n * n, element = result_size(work.type, Output::exact);
  std::byte* base = context.device.arena().data();
  const Matrices m{base + layout.a(0), base + layout.b(0), base + layout.c(0), count};
  const Matmul product = plain_product(work.type, work.shape(), Output::exact);
  const NumType right = right_operand(work.type);
  const RandomStream random = context.random.child("round" + std::to_string(round));
  const double t0 = now_s();
  context.device.fill_integer(work.type, m.a, count, random.child("a").key(), input_limit(work.type));
  context.device.fill_integer(right, m.b, count, random.child("b").key(), input_limit(work.type));
  context.device.stream(kernels::StreamOp::write, reinterpret_cast<double*>(m.c), nullptr, nullptr,
                        layout.result_bytes / sizeof(double));
  context.device.synchronize();
  std::vector<T> c(count);
  golden(fetch<T>(context.device, work.type, m.a, n, false),
         fetch<T>(context.device, right, m.b, n, product.transpose_b), c, n);
  const auto expected = stored(work.type, c);
  const double t1 = now_s();
  context.device.matmul(work.type, product, m.a, m.b, m.c);
  context.device.synchronize();
  context.apply_injected_delay(t1, 1);
  const double t2 = now_s();
  context.injection_point("gemm", m.c, count, element);
  const workload::WrongElements wrong =
      workload::compare_bits(context.device, m.c, expected.data(), count, element);
  add_miscompares(wrong, context);
  row.t.push_back(context.since_start(t1));
  row.block.push_back(0);
  row.values["errors"].push_back(static_cast<double>(wrong.count));
  digest = mix64(digest, context.device.digest(m.c, layout.result_bytes));
  if (round == 0) selftest(m, expected.data(), element, context);
  times.timed_s += t2 - t1;
  times.verify_s += (t1 - t0) + (now_s() - t2);
}

}  // namespace

void run_exact(const Case& c, Context& context) {
  const GemmWork work = work_from(c);
  context.record.declare(metrics().of("exact", "errors"));
  context.record.declare_integers("digest", {}, {});
  record_identity(context);
  const int rounds = c.parameters.value("rounds", 1);
  const workload::ProductLayout layout =
      workload::make_product_layout(work.type, work.shape(), 0, 0, Output::exact);
  context.device.reserve(layout.bytes());
  auto& row = context.record.add_row(context.device_entity);
  // A rank that is late and tells of no progress is taken for hung: no round is begun that would end late.
  const double late_s = c.deadline_s > 0 ? now_s() + c.deadline_s : context.deadline_s;
  std::uint64_t digest = 0;
  double longest_s = 0;
  Times times;
  int done = 0;
  for (; done < rounds; ++done) {
    const double begin = now_s();
    if (done > 0 && begin + longest_s > late_s) break;
    if (work.type == NumType::fp64)
      run_round<double>(work, done, layout, row, digest, times, context);
    else
      run_round<float>(work, done, layout, row, digest, times, context);
    context.count_batch();
    longest_s = std::max(longest_s, now_s() - begin);
  }
  // Of fewer rounds there is nothing to compare it with.
  row.integers["digest"] = {done == rounds ? digest : results::no_digest};
  if (done < rounds)
    context.record.set_state(
        results::CaseState::incomplete,
        "cut short after " + std::to_string(done) + " of " + std::to_string(rounds) + " rounds: deadline");
  context.record.add_time(0, times.timed_s, times.verify_s);
}

}  // namespace assay::gemm
