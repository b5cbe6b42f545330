// SPDX-License-Identifier: Apache-2.0
// Times the matrix multiplication of a BLAS or oneDNN library that is loaded by path, for
// scripts/bench_peers.sh.
//
//   peer_gemm LIBRARY cblas|dnnl fp32|fp64 N SECONDS
//
// Prints the median rate of the calls in FLOP/s. Threads and kernels are chosen by the library's own
// environment variables (OPENBLAS_NUM_THREADS, BLIS_NUM_THREADS, OMP_NUM_THREADS).
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// cblas.h: CblasRowMajor = 101, CblasNoTrans = 111; plain int without the 64-bit interface.
using SgemmFn = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                         float*, int);
using DgemmFn = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                         double*, int);
// dnnl_sgemm: row-major, dnnl_dim_t is 64 bits wide; returns 0 for success.
using DnnlFn = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*,
                       std::int64_t, const float*, std::int64_t, float, float*, std::int64_t);

template <typename Fn>
Fn load(const std::string& library, const char* symbol) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  void* address = dlsym(handle, symbol);
  if (!address) throw std::runtime_error(library + " has no " + symbol);
  return reinterpret_cast<Fn>(address);
}

template <typename T>
std::vector<T> random_matrix(std::size_t count, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> values(count);
  for (T& value : values) value = uniform(engine);
  return values;
}

double median_rate(int n, double seconds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  const auto warmup = Clock::now();
  do call();
  while (since(warmup) < 0.2 * seconds);
  std::vector<double> rates;
  const double flops = 2.0 * n * n * n;
  const auto start = Clock::now();
  while (rates.size() < 3 || since(start) < seconds) {
    const auto begin = Clock::now();
    call();
    rates.push_back(flops / since(begin));
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

template <typename T>
double run(int n, double seconds, const std::function<void(const T*, const T*, T*)>& multiply) {
  const auto count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  const auto a = random_matrix<T>(count, 1);
  const auto b = random_matrix<T>(count, 2);
  std::vector<T> c(count);
  return median_rate(n, seconds, [&] { multiply(a.data(), b.data(), c.data()); });
}

double measure(const std::string& library, const std::string& api, const std::string& type, int n,
               double seconds) {
  if (api == "dnnl" && type == "fp32") {
    const auto gemm = load<DnnlFn>(library, "dnnl_sgemm");
    return run<float>(n, seconds, [=](const float* a, const float* b, float* c) {
      if (gemm('N', 'N', n, n, n, 1.0F, a, n, b, n, 0.0F, c, n) != 0)
        throw std::runtime_error("dnnl_sgemm failed");
    });
  }
  if (api == "cblas" && type == "fp32") {
    const auto gemm = load<SgemmFn>(library, "cblas_sgemm");
    return run<float>(n, seconds, [=](const float* a, const float* b, float* c) {
      gemm(101, 111, 111, n, n, n, 1.0F, a, n, b, n, 0.0F, c, n);
    });
  }
  if (api == "cblas" && type == "fp64") {
    const auto gemm = load<DgemmFn>(library, "cblas_dgemm");
    return run<double>(n, seconds, [=](const double* a, const double* b, double* c) {
      gemm(101, 111, 111, n, n, n, 1.0, a, n, b, n, 0.0, c, n);
    });
  }
  throw std::runtime_error(api + " has no gemm in " + type);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) throw std::runtime_error("usage: peer_gemm LIBRARY cblas|dnnl fp32|fp64 N SECONDS");
  const int n = std::atoi(argv[4]);
  const double seconds = std::atof(argv[5]);
  if (n < 1 || !(seconds > 0)) throw std::runtime_error("N and SECONDS must be positive");
  std::printf("%.6e\n", measure(argv[1], argv[2], argv[3], n, seconds));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "peer_gemm: %s\n", e.what());
  return 1;
}
