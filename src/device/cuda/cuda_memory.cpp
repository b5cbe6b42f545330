// SPDX-License-Identifier: Apache-2.0
// Memory of one GPU: what kernels/cuda does, queued on the device's stream, and its results brought to the
// host.
#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_memory_ops.hpp"
#include "kernels/cache.hpp"
#include "kernels/chase.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"
#include "kernels/fma_peak.hpp"

namespace assay::cuda {
namespace {

using kernels::DeviceErrors;
using kernels::DeviceRecord;
using kernels::Element;
using kernels::ErrorLog;

/// Records of one sweep; what the default ErrorLog holds.
constexpr std::size_t record_capacity = 1000;

Element element_of(NumType type) noexcept {
  switch (type) {
    case NumType::fp64: return Element::fp64;
    case NumType::fp32: return Element::fp32;
    case NumType::tf32: return Element::tf32;
    case NumType::fp16: return Element::fp16;
    case NumType::bf16: return Element::bf16;
    case NumType::fp8:
    case NumType::fp8_fast: return Element::fp8;
    case NumType::fp8_e5m2: return Element::fp8_e5m2;
    case NumType::int8: break;
  }
  return Element::int8;
}

kernels::ErrorRecord host_record(const DeviceRecord& r) {
  kernels::ErrorRecord record{r.index, r.expected, r.actual, r.reread[1]};
  record.sm = r.sm;
  record.warp = r.warp;
  record.lane = r.lane;
  record.unstable = r.reread[0] != r.reread[1];
  return record;
}

}  // namespace

/// Batches of at least a few milliseconds, until the time is over. What tensor cores can do is for products
/// to say.
double CudaDevice::fma_peak(NumType type, double seconds) {
  if (type != NumType::fp64 && type != NumType::fp32)
    throw Error(ErrorKind::device,
                std::string("fma_peak: only fp64 and fp32 have multiply-adds outside of tensor cores, not ") +
                    to_string(type));
  auto* escaped = scratch_.as<unsigned long long>();
  check(cudaMemsetAsync(escaped, 0, sizeof(*escaped), stream_), "cudaMemset");
  const auto burn = [&](std::uint64_t rounds) {
    const auto queue = type == NumType::fp32 ? kernels::cuda::fma_burn_fp32 : kernels::cuda::fma_burn_fp64;
    const double flops = queue(rounds, escaped, stream_);
    check_launch("fma_burn");
    return flops;
  };
  std::uint64_t rounds = 1;
  for (double took_s = 0; took_s < 2e-3 && rounds < (std::uint64_t{1} << 40);) {
    const double begin_s = now_s();
    burn(rounds);
    synchronize();
    took_s = now_s() - begin_s;
    if (took_s < 2e-3) rounds *= 2;
  }
  double flops = 0, elapsed_s = 0;
  const double begin_s = now_s();
  do {
    flops += burn(rounds);
    synchronize();
    elapsed_s = now_s() - begin_s;
  } while (elapsed_s < seconds);
  unsigned long long wrong = 0;
  copy_to_host(&wrong, escaped, sizeof(wrong));
  return wrong == 0 ? flops / elapsed_s : 0.0;
}

void CudaDevice::fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) {
  kernels::cuda::fill_uniform(element_of(type), data, count, key, 0, stream_);
  check_launch("fill_uniform");
}

void CudaDevice::fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) {
  const int most = kernels::largest_exact_integer(element_of(type));
  if (limit < 0 || limit > most)
    throw Error(ErrorKind::device, "fill_integer: limit " + std::to_string(limit) + " is outside 0 to " +
                                       std::to_string(most) + " for " + to_string(type));
  kernels::cuda::fill_integer(element_of(type), data, count, key, 0, limit, stream_);
  check_launch("fill_integer");
}

std::uint64_t CudaDevice::digest(const void* data, std::size_t bytes) {
  return digests({&data, 1}, bytes).front();
}

std::vector<std::uint64_t> CudaDevice::digests(std::span<const void* const> data, std::size_t bytes) {
  std::vector<std::uint64_t> results(data.size());
  const std::size_t most = scratch_.bytes() / sizeof(std::uint64_t);
  auto* sums = scratch_.as<std::uint64_t>();
  for (std::size_t done = 0; done < data.size(); done += most) {
    const std::size_t part = std::min(most, data.size() - done), part_bytes = part * sizeof(*sums);
    check(cudaMemsetAsync(sums, 0, part_bytes, stream_), "cudaMemset");
    for (std::size_t i = 0; i < part; ++i) kernels::cuda::digest(data[done + i], bytes, 0, sums + i, stream_);
    check_launch("digest");
    copy_to_host(results.data() + done, sums, part_bytes);
  }
  return results;
}

void CudaDevice::poison(void* data, std::size_t bytes, std::size_t step) {
  kernels::cuda::poison(data, bytes, step, stream_);
  check_launch("poison");
}

void CudaDevice::stream(kernels::StreamOp op, double* a, const double* b, const double* c,
                        std::size_t count) {
  kernels::cuda::stream(op, a, b, c, count, scratch_.as<double>(), stream_);
  check_launch("stream");
}

ChaseTime CudaDevice::chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) {
  const auto build = [this](void* chain, std::size_t size, std::uint64_t chain_key) {
    kernels::cuda::chase_build(chain, size, chain_key, stream_);
  };
  const auto walk = [this](const void* chain, std::size_t size, std::uint64_t chain_key, std::size_t start,
                           std::size_t loads) {
    struct Result {
      kernels::ChaseEnd end;
      double elapsed_ns;
    };
    auto* result = scratch_.as<Result>();
    kernels::cuda::chase_walk(chain, size, chain_key, start, loads, &result->end, &result->elapsed_ns,
                              stream_);
    check_launch("chase");
    Result got{};
    copy_to_host(&got, result, sizeof(got));
    return std::pair(got.end, got.elapsed_ns);
  };
  return chain_.time(*this, {build, walk}, memory, bytes, steps, key);
}

std::span<const std::byte> CudaDevice::evicting() {
  const std::size_t wanted = kernels::cuda::evict_multiple * cache_bytes();
  const Buffer& arena = lender_ && lender_->bytes() > arena_->bytes() ? *lender_ : *arena_;
  if (arena.bytes() < wanted && evicting_.bytes() < wanted) {
    try {
      evicting_ = Buffer(wanted);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::resource) throw;
    }
  }
  const Buffer& through = arena.bytes() >= evicting_.bytes() ? arena : evicting_;
  return {through.as<std::byte>(), std::min(wanted, through.bytes())};
}

/// A sweep that verifies is waited for: the count that decides about all else is 8 bytes away, some 20 us on
/// every sweep.
void CudaDevice::sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count, ErrorLog& log) {
  if (errors_.bytes() == 0) errors_ = Buffer(kernels::cuda::errors_bytes(record_capacity));
  auto* errors = errors_.as<DeviceErrors>();
  if (sweep.verify) kernels::cuda::clear_errors(errors, record_capacity, stream_);
  kernels::cuda::sweep(sweep, words, count, sweeps_++, errors, stream_);
  check_launch("sweep");
  if (!sweep.verify) return;
  DeviceErrors sum{};
  copy_to_host(&sum.count, &errors->count, sizeof(sum.count));
  if (sum.count == 0) return;
  const auto evicting = this->evicting();
  for (const int look : {0, 1}) {
    kernels::cuda::evict(evicting.data(), evicting.size(), scratch_.as<unsigned long long>(), stream_);
    kernels::cuda::look_again(words, errors, look, stream_);
  }
  check_launch("look_again");
  copy_to_host(&sum, errors, sizeof(sum));
  std::vector<DeviceRecord> records(std::min<std::size_t>(sum.kept, record_capacity));
  copy_to_host(records.data(), errors + 1, records.size() * sizeof(DeviceRecord));
  const bool emptied = evicting.size() >= kernels::cuda::evict_multiple * cache_bytes();
  for (const DeviceRecord& r : records) {
    kernels::ErrorRecord record = host_record(r);
    record.cached = !emptied || r.waits == 0;
    log.add(record);
  }
  log.add_count(sum.count - records.size());
  for (std::size_t bit = 0; bit < 64; ++bit)
    for (const bool one : {true, false}) log.add_bits(bit, one, sum.bits[one ? 0 : 1][bit]);
}

void CudaDevice::payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes) {
  kernels::cuda::payload_fill(key, data, bytes, stream_);
  check_launch("payload_fill");
}

kernels::PayloadErrors CudaDevice::payload_check(kernels::PayloadKey key, const void* data,
                                                 std::size_t bytes) {
  auto* errors = scratch_.as<kernels::PayloadErrors>();
  kernels::cuda::payload_check(key, data, bytes, errors, stream_);
  check_launch("payload_check");
  kernels::PayloadErrors result;
  copy_to_host(&result, errors, sizeof(result));
  return result;
}

MemoryOps* CudaDevice::memory_ops() {
  if (memory_ops_ == nullptr) memory_ops_ = std::make_unique<CudaMemoryOps>(properties_, stream_);
  return memory_ops_.get();
}

void CudaDevice::exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data,
                            std::size_t count) {
  kernels::cuda::exact_fill(line, first, data, count, stream_);
  check_launch("exact_fill");
}

kernels::ExactErrors CudaDevice::exact_check(const kernels::ExactLine& line, std::uint64_t first,
                                             const float* data, std::size_t count) {
  auto* errors = scratch_.as<kernels::ExactErrors>();
  kernels::cuda::exact_check(line, first, data, count, errors, stream_);
  check_launch("exact_check");
  kernels::ExactErrors result;
  copy_to_host(&result, errors, sizeof(result));
  return result;
}

}  // namespace assay::cuda
