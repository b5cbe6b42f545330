// SPDX-License-Identifier: Apache-2.0
#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/blas.hpp"
#include "device/chain.hpp"
#include "device/device.hpp"
#include "device/host_train_ops.hpp"
#include "device/team.hpp"
#include "kernels/chase.hpp"
#include "kernels/digest.hpp"
#include "kernels/fill.hpp"
#include "kernels/fma_peak.hpp"

namespace assay {
namespace {

namespace host = kernels::host;

std::size_t last_level_cache_bytes() noexcept {
  for (const int name : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE})
    if (const long bytes = sysconf(name); bytes > 0) return static_cast<std::size_t>(bytes);
  return std::size_t{32} << 20;
}

int blas_int(std::size_t value, const char* name) {
  if (value > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ErrorKind::device,
                std::string("gemm: ") + name + " = " + std::to_string(value) + " exceeds the BLAS integer");
  return static_cast<int>(value);
}

/// What one thread did in a timed loop; a cache line each, so that threads do not disturb each other.
struct alignas(64) Tally {
  double flops = 0, elapsed_s = 0;
  std::uint64_t sum = 0;
};

class HostDevice final : public Device {
 public:
  HostDevice(std::vector<int> cpus, std::vector<int> numa, bool pin)
      : blas_threads_(set_blas_threads(std::max(1, static_cast<int>(cpus.size())))),
        cpus_(std::move(cpus)),
        numa_(std::move(numa)),
        pinned_(pin),
        cache_bytes_(last_level_cache_bytes()),
        team_(cpus_, pin),
        train_ops_(make_host_train_ops(team_)) {
    if (pin) bind_blas_threads(cpus_);
  }

  std::string_view kind() const noexcept override { return "host"; }
  std::string description() const override;
  std::map<std::string, std::string> identity() const override;
  int threads() const noexcept override { return team_.size(); }

  void reserve(std::size_t bytes) override {
    chain_.forget();
    arena_.reserve(bytes, team_);
  }
  std::size_t reserve_until(std::size_t bytes, double until_s) override {
    chain_.forget();
    return arena_.reserve_until(bytes, until_s, team_);
  }
  std::span<std::byte> arena() noexcept override { return arena_.bytes(); }
  std::size_t stride_bytes() const noexcept override {
    return Arena::granule_bytes * static_cast<std::size_t>(team_.size());
  }
  void synchronize() override {}
  std::unique_ptr<Device> second_stream() const override { return make_host_device(cpus_, numa_, pinned_); }

  bool supports(NumType type) const noexcept override {
    return type == NumType::fp64 || type == NumType::fp32;
  }
  void matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) override;
  TrainOps* train_ops() noexcept override { return train_ops_.get(); }
  double fma_peak(NumType type, double seconds) override;
  void fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) override;
  void fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) override;
  std::uint64_t digest(const void* data, std::size_t bytes) override;
  void stream(kernels::StreamOp op, double* a, const double* b, const double* c, std::size_t count) override;
  ChaseTime chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) override;
  void sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count,
             kernels::ErrorLog& log) override;

  int numa_of_thread(int thread) const noexcept override {
    const auto i = static_cast<std::size_t>(thread);
    return thread >= 0 && i < numa_.size() ? numa_[i] : -1;
  }

 private:
  void require(NumType type, const char* what) const {
    if (!supports(type))
      throw Error(ErrorKind::device, std::string(what) + ": the host device has no " + to_string(type));
  }

  /// f(begin, end, thread) for all shares of an array, on all threads.
  template <typename F>
  void for_all(const void* data, std::size_t count, std::size_t element_bytes, bool down,
               const F& f) noexcept {
    team_.run([&](int thread) noexcept {
      for_share(data, count, element_bytes, thread, team_.size(), down,
                [&](std::size_t begin, std::size_t end) { f(begin, end, thread); });
    });
  }

  /// A thread that the library starts later inherits the caller's binding, so they are started before the
  /// caller is bound.
  int blas_threads_;
  std::vector<int> cpus_, numa_;
  bool pinned_;
  std::size_t cache_bytes_;
  Team team_;
  std::unique_ptr<TrainOps> train_ops_;
  Arena arena_;
  Chain chain_;
};

std::string HostDevice::description() const {
  const auto info = blas_info();
  return std::to_string(threads()) + (threads() == 1 ? " thread" : " threads") + (pinned_ ? ", bound" : "") +
         ", " + host::fma_isa() + ", " + info.at("library") +
         (info.at("core").empty() ? "" : " " + info.at("core"));
}

std::map<std::string, std::string> HostDevice::identity() const {
  const auto info = blas_info();
  std::string blas = info.at("library");
  for (const char* part : {"core", "parallel"})
    if (!info.at(part).empty()) blas += " " + info.at(part);
  std::map<std::string, std::string> out = {{"device", "host"},
                                            {"blas", blas},
                                            {"threads", std::to_string(threads())},
                                            {"isa", host::fma_isa()},
                                            {"pinned", pinned_ ? "1" : "0"}};
  if (blas_threads_ < threads()) out["blas_threads"] = std::to_string(blas_threads_);
  return out;
}

void HostDevice::matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) {
  require(type, "matmul");
  const int m = blas_int(shape.m, "m"), n = blas_int(shape.n, "n"), k = blas_int(shape.k, "k");
  if (m == 0 || n == 0) return;
  const auto op = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
  const int lda = std::max(1, shape.transpose_a ? m : k), ldb = std::max(1, shape.transpose_b ? k : n);
  if (type == NumType::fp32) {
    cblas_sgemm(CblasRowMajor, op(shape.transpose_a), op(shape.transpose_b), m, n, k, 1.0f,
                static_cast<const float*>(a), lda, static_cast<const float*>(b), ldb,
                shape.accumulate ? 1.0f : 0.0f, static_cast<float*>(c), n);
  } else {
    cblas_dgemm(CblasRowMajor, op(shape.transpose_a), op(shape.transpose_b), m, n, k, 1.0,
                static_cast<const double*>(a), lda, static_cast<const double*>(b), ldb,
                shape.accumulate ? 1.0 : 0.0, static_cast<double*>(c), n);
  }
}

double HostDevice::fma_peak(NumType type, double seconds) {
  require(type, "fma_peak");
  const auto burn = type == NumType::fp32 ? host::fma_burn_fp32 : host::fma_burn_fp64;
  // Batches of about a millisecond: the clock costs nothing, and the end is met to a millisecond.
  std::uint64_t rounds = 1000;
  for (double took_s = 0; took_s < 0.5e-3 && rounds < (std::uint64_t{1} << 40);) {
    const double begin_s = now_s();
    burn(rounds);
    took_s = now_s() - begin_s;
    if (took_s < 0.5e-3) rounds *= 2;
  }
  std::vector<Tally> tallies(static_cast<std::size_t>(team_.size()));
  team_.run([&](int thread) noexcept {
    Tally tally;
    const double begin_s = now_s();
    do {
      const double flops = burn(rounds);
      tally.sum += flops > 0 ? 0 : 1;
      tally.flops += flops;
      tally.elapsed_s = now_s() - begin_s;
    } while (tally.elapsed_s < seconds);
    tallies[static_cast<std::size_t>(thread)] = tally;
  });
  double rate = 0;
  for (const Tally& t : tallies) {
    if (t.sum != 0) return 0;  // batches without a valid result
    rate += t.flops / t.elapsed_s;
  }
  return rate;
}

void HostDevice::fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) {
  require(type, "fill_uniform");
  for_all(data, count, size_of(type), false, [&](std::size_t begin, std::size_t end, int) {
    if (type == NumType::fp32)
      host::fill_uniform_fp32(static_cast<float*>(data) + begin, end - begin, key, begin);
    else
      host::fill_uniform_fp64(static_cast<double*>(data) + begin, end - begin, key, begin);
  });
}

void HostDevice::fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) {
  require(type, "fill_integer");
  if (limit < 0 || limit > (1 << 24))
    throw Error(ErrorKind::device,
                "fill_integer: limit " + std::to_string(limit) + " is outside 0 to 16777216");
  for_all(data, count, size_of(type), false, [&](std::size_t begin, std::size_t end, int) {
    if (type == NumType::fp32)
      host::fill_integer_fp32(static_cast<float*>(data) + begin, end - begin, key, begin, limit);
    else
      host::fill_integer_fp64(static_cast<double*>(data) + begin, end - begin, key, begin, limit);
  });
}

std::uint64_t HostDevice::digest(const void* data, std::size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  const std::size_t words = (bytes + 7) / 8;
  std::vector<Tally> tallies(static_cast<std::size_t>(team_.size()));
  for_all(data, words, 8, false, [&](std::size_t begin, std::size_t end, int thread) {
    const std::size_t last = std::min(bytes, end * 8);
    tallies[static_cast<std::size_t>(thread)].sum += host::digest(p + begin * 8, last - begin * 8, begin);
  });
  std::uint64_t sum = 0;
  for (const Tally& t : tallies) sum += t.sum;
  return sum;
}

void HostDevice::stream(kernels::StreamOp op, double* a, const double* b, const double* c,
                        std::size_t count) {
  // Shares are cut into granules, so their size cannot tell; what decides is whether the arrays could stay in
  // the cache.
  const bool large = count * sizeof(double) * kernels::stream_arrays(op) > cache_bytes_ / 2;
  const auto stores = large ? host::Stores::streaming : host::Stores::cached;
  std::vector<Tally> tallies(static_cast<std::size_t>(team_.size()));
  for_all(a, count, sizeof(double), false, [&](std::size_t begin, std::size_t end, int thread) {
    const double sum = host::stream(op, a + begin, b == nullptr ? b : b + begin, c == nullptr ? c : c + begin,
                                    end - begin, stores);
    tallies[static_cast<std::size_t>(thread)].flops += sum;
  });
}

ChaseTime HostDevice::chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) {
  const auto walk = [](const void* chain, std::size_t size, std::uint64_t chain_key, std::size_t start,
                       std::size_t loads) {
    const double begin_s = now_s();
    const kernels::ChaseEnd end = host::chase_walk(chain, size, chain_key, start, loads);
    return std::pair(end, (now_s() - begin_s) * 1e9);
  };
  return chain_.time(*this, {host::chase_build, walk}, memory, bytes, steps, key);
}

void HostDevice::sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count,
                       kernels::ErrorLog& log) {
  const std::size_t half = count / 2;
  // A move is shared by its destination: who writes a page owns it.
  const std::uint64_t* owned = sweep.move ? words + half : words;
  for_all(owned, sweep.move ? half : count, 8, sweep.down,
          [&](std::size_t begin, std::size_t end, int thread) {
            host::sweep(sweep, words, begin, end, half, thread, log);
          });
}

}  // namespace

std::unique_ptr<Device> make_host_device(std::vector<int> cpus, std::vector<int> numa, bool pin) {
  return std::make_unique<HostDevice>(std::move(cpus), std::move(numa), pin);
}

}  // namespace assay
