// SPDX-License-Identifier: Apache-2.0
// The device functions that assay's kernels call. A block runs on one thread of the host, so an atomic is an
// ordinary operation.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulation/grid.hpp"
#include "emulation/traffic.hpp"

#define threadIdx (::emulation::self().thread)
#define blockIdx (::emulation::self().block)
#define blockDim (::emulation::self().block_size)
#define gridDim (::emulation::self().grid_size)
#define warpSize (::emulation::warp_size)

inline void __syncthreads() { emulation::sync_block(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulation::from_lane(mask, 0, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
inline long long clock64() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const unsigned me = emulation::self().lane, w = static_cast<unsigned>(width);
  return emulation::from_lane(mask, value, me / w * w + static_cast<unsigned>(lane) % w);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int = 32) {
  return emulation::from_lane(mask, value, emulation::self().lane ^ static_cast<unsigned>(lanes));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned me = emulation::self().lane, w = static_cast<unsigned>(width);
  return emulation::from_lane(mask, value, me % w + delta < w ? me + delta : me);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned me = emulation::self().lane, w = static_cast<unsigned>(width);
  return emulation::from_lane(mask, value, me % w >= delta ? me - delta : me);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const int mine = predicate != 0;
  const std::byte(*all)[64] = emulation::exchange(mask, &mine, sizeof(mine));
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    int value = 0;
    std::memcpy(&value, all[lane], sizeof(value));
    if ((mask >> lane & 1u) != 0 && value != 0) bits |= 1u << lane;
  }
  return bits;
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  const std::byte(*all)[64] = emulation::exchange(mask, &value, sizeof(value));
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned other = 0;
    std::memcpy(&other, all[lane], sizeof(other));
    if ((mask >> lane & 1u) != 0) bits |= other;
  }
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }
inline int __syncthreads_or(int predicate) {
  static int any;
  __syncthreads();
  any = 0;
  __syncthreads();
  any |= predicate;
  __syncthreads();
  return any;
}

template <typename T, typename U>
T atomicAdd(T* p, U v) {
  emulation::count_atomic(p);
  const T old = *p;
  *p = static_cast<T>(old + static_cast<T>(v));
  return old;
}
template <typename T, typename U>
T atomicOr(T* p, U v) {
  emulation::count_atomic(p);
  const T old = *p;
  *p = old | static_cast<T>(v);
  return old;
}
template <typename T, typename U>
T atomicMax(T* p, U v) {
  emulation::count_atomic(p);
  const T old = *p;
  *p = std::max(old, static_cast<T>(v));
  return old;
}
template <typename T, typename U>
T atomicMin(T* p, U v) {
  emulation::count_atomic(p);
  const T old = *p;
  *p = std::min(old, static_cast<T>(v));
  return old;
}
template <typename T, typename U>
T atomicExch(T* p, U v) {
  emulation::count_atomic(p);
  const T old = *p;
  *p = static_cast<T>(v);
  return old;
}
template <typename T>
T atomicCAS(T* p, T compare, T value) {
  emulation::count_atomic(p);
  const T old = *p;
  if (old == compare) *p = value;
  return old;
}

template <typename T>
T __ldg(const T* p) {
  return emulation::load(p, true);
}
template <typename T>
T __ldcs(const T* p) {
  return emulation::load(p, false);
}
template <typename T>
T __ldca(const T* p) {
  return emulation::load(p, true);
}
template <typename T>
T __ldcg(const T* p) {
  return emulation::load(p, true);
}
template <typename T>
T __ldcv(const T* p) {
  return emulation::load(p, true);
}
template <typename T>
void __stcs(T* p, T v) {
  emulation::store(p, v);
}
template <typename T>
void __stcg(T* p, T v) {
  emulation::store(p, v);
}
template <typename T>
void __stwt(T* p, T v) {
  emulation::store(p, v);
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
__extension__ using uint128 = unsigned __int128;
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<uint128>(a) * b) >> 64);
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

// Not contracted, on a GPU as here (the emulation is compiled with -ffp-contract=off).
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
using std::max;
using std::min;
