// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/corrupt.hpp"
#include "kernels/gemm_golden.hpp"
#include "suites/gemm/check.hpp"
#include "suites/gemm/gemm_job.hpp"

namespace assay::gemm {
namespace {

void golden(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c, std::size_t n) {
  kernels::host::gemm_golden_fp32(a.data(), b.data(), c.data(), n, n, n, 0, n);
}
void golden(const std::vector<double>& a, const std::vector<double>& b, std::vector<double>& c,
            std::size_t n) {
  kernels::host::gemm_golden_fp64(a.data(), b.data(), c.data(), n, n, n, 0, n);
}

/// The largest |input| for which every partial sum of n products is exact in any order: n limit^2 <= 2^24
/// (2^53).
int input_limit(NumType type) { return type == NumType::fp32 ? 127 : 1 << 20; }

struct Matrices {
  std::byte *a, *b, *c;
  std::size_t count;
};

void add_miscompares(const WrongElements& wrong, Context& context) {
  const double t = context.since_start(now_s());
  for (std::size_t i = 0; i < wrong.first.size(); ++i) {
    const WrongElement& w = wrong.first[i];
    const bool last = i + 1 == wrong.first.size();
    context.record.miscompare({"", context.device_entity, w.index, w.expected, w.actual, w.reread, t},
                              last ? wrong.count - i : 1);
  }
}

/// Detection test: one flipped bit of C must be caught, located and counted as exactly one, and be gone when
/// restored. A result that was wrong before is told apart by the count it already had.
void selftest(const Matrices& m, const void* expected, std::size_t element, std::uint64_t already,
              Context& context) {
  const RandomStream random = context.random.child("selftest");
  const std::size_t index = random.below(0, m.count);
  const auto bit = static_cast<unsigned>(random.below(1, 8 * element));
  flip_bit(context.device, m.c, index, element, bit);
  const WrongElements wrong = compare_bits(context.device, m.c, expected, m.count, element);
  flip_bit(context.device, m.c, index, element, bit);
  const bool located =
      std::any_of(wrong.first.begin(), wrong.first.end(), [&](const auto& w) { return w.index == index; });
  const auto caught = static_cast<std::int64_t>(wrong.count) - static_cast<std::int64_t>(already);
  results::SelftestRow row{"gemm",          1,      wrong.count > already ? 1 : 0,
                           located ? 1 : 0, caught, context.device_entity};
  if (compare_bits(context.device, m.c, expected, m.count, element).count != already) row.counted = -1;
  context.record.selftest(row);
}

template <class T>
void run_typed(const Job& job, int rounds, Context& context) {
  const std::size_t n = job.n, count = n * n;
  const Layout layout = make_layout(job.type, n, 0, 0);
  context.device.reserve(layout.bytes());
  std::byte* base = context.device.arena().data();
  const Matrices m{base + layout.a(0), base + layout.b(0), base + layout.c(0), count};
  std::vector<T> a(count), b(count), c(count);
  auto& row = context.record.add_row(context.device_entity);
  std::uint64_t digest = 0;
  double timed_s = 0, verify_s = 0;
  for (int round = 0; round < rounds; ++round) {
    const RandomStream random = context.random.child("round" + std::to_string(round));
    const double t0 = now_s();
    context.device.fill_integer(job.type, m.a, count, random.child("a").key(), input_limit(job.type));
    context.device.fill_integer(job.type, m.b, count, random.child("b").key(), input_limit(job.type));
    context.device.stream(kernels::StreamOp::write, reinterpret_cast<double*>(m.c), nullptr, nullptr,
                          layout.matrix_bytes / sizeof(double));
    context.device.synchronize();
    context.device.copy_to_host(a.data(), m.a, layout.matrix_bytes);
    context.device.copy_to_host(b.data(), m.b, layout.matrix_bytes);
    golden(a, b, c, n);
    const double t1 = now_s();
    context.device.gemm(job.type, job.shape(), m.a, m.b, m.c);
    context.device.synchronize();
    context.end_timed(t1, 1);
    const double t2 = now_s();
    context.offer("gemm", m.c, count, sizeof(T));
    const WrongElements wrong = compare_bits(context.device, m.c, c.data(), count, sizeof(T));
    add_miscompares(wrong, context);
    row.t.push_back(context.since_start(t1));
    row.block.push_back(0);
    row.values["errors"].push_back(static_cast<double>(wrong.count));
    digest = mix64(digest, context.device.digest(m.c, layout.matrix_bytes));
    if (round == 0) selftest(m, c.data(), sizeof(T), wrong.count, context);
    timed_s += t2 - t1;
    verify_s += (t1 - t0) + (now_s() - t2);
  }
  row.integers["digest"] = {digest};
  context.record.add_time(0, timed_s, verify_s);
}

}  // namespace

void run_exact(const Case& c, Context& context) {
  const Job job = job_from(c);
  context.record.declare({"errors", "count", results::Better::lower, true, results::Role::metric, true});
  context.record.declare_integers("digest", {}, {});
  record_identity(context);
  const int rounds = c.parameters.value("rounds", 1);
  if (job.type == NumType::fp32)
    run_typed<float>(job, rounds, context);
  else if (job.type == NumType::fp64)
    run_typed<double>(job, rounds, context);
  else
    throw Error(ErrorKind::internal, "no exact golden for " + std::string(to_string(job.type)));
}

}  // namespace assay::gemm
