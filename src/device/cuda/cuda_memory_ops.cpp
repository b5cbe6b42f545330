// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_memory_ops.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/affinity.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "kernels/copy.hpp"
#include "kernels/onchip.hpp"

namespace assay::cuda {
namespace {

using kernels::DeviceErrors;
using kernels::DeviceRecord;

constexpr std::size_t probe_capacity = 100;
constexpr int most_tries = 16;  ///< until every multiprocessor has run a block
constexpr unsigned l1_rounds = 4096;
static_assert(kernels::max_multiprocessors == max_multiprocessor_number);

/// Binds untouched memory to a NUMA domain, without the libraries for it, as nothing else here needs them.
/// Returns errno of what the system refuses: containers often lack the right.
int bind_to(int numa, void* memory, std::size_t bytes) {
  constexpr int bind = 2;  // MPOL_BIND of linux/mempolicy.h
  std::array<unsigned long, 16> mask{};
  constexpr std::size_t bits = 8 * sizeof(mask[0]);
  if (static_cast<std::size_t>(numa) >= mask.size() * bits) return EINVAL;
  mask[static_cast<std::size_t>(numa) / bits] |= 1UL << (static_cast<std::size_t>(numa) % bits);
  return syscall(SYS_mbind, memory, bytes, bind, mask.data(), mask.size() * bits, 0) == 0 ? 0 : errno;
}

/// Whether all pages of the mapping that holds `memory` lie in this domain: the line of /proc/self/numa_maps
/// with the last start before it ("7f5c00000000 default anon=512 N0=512 ..."), which needs no right.
bool lies_in(int numa, const void* memory) {
  std::ifstream maps("/proc/self/numa_maps");
  const std::string wanted = "N" + std::to_string(numa) + "=";
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (std::stoull(line, nullptr, 16) > reinterpret_cast<std::uintptr_t>(memory)) break;
    inside = false;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word[0] != 'N' || word.find('=') == std::string::npos) continue;
      inside = word.starts_with(wanted);
      if (!inside) break;
    }
  }
  return inside;
}

kernels::ErrorRecord probe_record(const DeviceRecord& r) {
  kernels::ErrorRecord record{r.index, r.expected, r.actual, r.reread[1]};
  record.sm = r.sm;
  record.warp = r.warp;
  record.lane = r.lane;
  return record;
}

std::vector<int> cpus_of_domain(int numa) {
  std::ifstream list("/sys/devices/system/node/node" + std::to_string(numa) + "/cpulist");
  std::string text;
  return std::getline(list, text) ? parse_cpu_list(text) : std::vector<int>();
}

}  // namespace

bool run_on(const std::vector<int>& cpus, const std::function<void()>& work) {
  bool bound = false;
  std::thread([&] {
    bound = bind_thread(pthread_self(), cpus);
    if (bound) work();
  }).join();
  return bound;
}

CudaMemoryOps::CudaMemoryOps(const cudaDeviceProp& properties, cudaStream_t stream)
    : properties_(properties), stream_(stream) {
  for (cudaStream_t& copies : copies_)
    check(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaMemoryOps::~CudaMemoryOps() {
  release();
  for (cudaStream_t copies : copies_)
    if (copies != nullptr) cudaStreamDestroy(copies);
}

void CudaMemoryOps::release() noexcept {
  if (host_ == nullptr) return;
  cudaHostUnregister(host_);
  munmap(host_, host_bytes_);
  host_ = nullptr;
}

std::uint64_t CudaMemoryOps::run_once(OnChip test, std::uint64_t key, DeviceErrors* errors,
                                      std::uint32_t* visited) {
  namespace cu = kernels::cuda;
  switch (test) {
    case OnChip::l1:
      cu::l1_prepare(region_.as<std::uint32_t>(), key, stream_);
      cu::l1_check(region_.as<std::uint32_t>(), key, l1_rounds, errors, visited, stream_);
      return kernels::l1_words * sizeof(std::uint32_t);
    case OnChip::shared: return cu::shared_march(key, ~std::size_t{0}, errors, visited, stream_);
    case OnChip::l2: break;
  }
  const std::size_t words = region_.bytes() / sizeof(std::uint64_t);
  cu::l2_write(region_.as<std::uint64_t>(), words, key, stream_);
  cu::l2_check(region_.as<std::uint64_t>(), words, key, errors, visited, stream_);
  return region_.bytes();
}

/// Blocks go where the GPU puts them: again until all multiprocessors have had one.
OnChipResult CudaMemoryOps::on_chip(OnChip test, std::uint64_t key) {
  const std::size_t half_l2 =
      std::max<std::size_t>(static_cast<std::size_t>(properties_.l2CacheSize) / 2, 4096) / 4096 * 4096;
  const std::size_t wanted = test == OnChip::l2 ? half_l2 : kernels::l1_words * sizeof(std::uint32_t);
  if (test != OnChip::shared && region_.bytes() != wanted) region_ = Buffer(wanted);
  const std::size_t errors_bytes = kernels::cuda::errors_bytes(probe_capacity);
  if (errors_.bytes() == 0) errors_ = Buffer(errors_bytes + kernels::visited_words * sizeof(std::uint32_t));
  auto* errors = errors_.as<DeviceErrors>();
  auto* visited = reinterpret_cast<std::uint32_t*>(errors_.as<std::byte>() + errors_bytes);
  kernels::cuda::clear_errors(errors, probe_capacity, stream_);
  check(cudaMemsetAsync(visited, 0, kernels::visited_words * sizeof(std::uint32_t), stream_), "cudaMemset");

  OnChipResult result;
  result.multiprocessors = static_cast<std::size_t>(properties_.multiProcessorCount);
  std::array<std::uint32_t, kernels::visited_words> seen{};
  const auto fetch = [&](void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
    check(cudaStreamSynchronize(stream_), to_string(test));
  };
  for (int i = 0; i < most_tries && result.visited.size() < result.multiprocessors; ++i) {
    result.bytes += run_once(test, mix64(key, static_cast<std::uint64_t>(i)), errors, visited);
    check_launch(to_string(test));
    fetch(seen.data(), visited, sizeof(seen));
    result.visited.clear();
    for (std::size_t sm = 0; sm < kernels::max_multiprocessors; ++sm)
      if ((seen[sm / 32] >> (sm % 32) & 1) != 0) result.visited.push_back(static_cast<int>(sm));
  }
  result.bytes *= result.visited.size();
  DeviceErrors sum{};
  fetch(&sum, errors, sizeof(sum));
  result.errors = sum.count;
  std::vector<DeviceRecord> records(std::min<std::size_t>(sum.kept, probe_capacity));
  if (!records.empty()) fetch(records.data(), errors + 1, records.size() * sizeof(DeviceRecord));
  for (const DeviceRecord& r : records) result.first.push_back(probe_record(r));
  return result;
}

void* CudaMemoryOps::host_buffer(int numa, std::size_t bytes) {
  release();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::resource, "no " + std::to_string(bytes) + " bytes of host memory");
  host_bytes_ = bytes;
  const int refused = numa < 0 ? 0 : bind_to(numa, memory, bytes);
  const auto touch = [&] { std::memset(memory, 0, bytes); };
  // The kernel puts a page where the thread runs that touches it first, if there is room.
  if (refused == 0 || !run_on(cpus_of_domain(numa), touch)) touch();
  host_way_ = numa < 0 ? "any" : refused == 0 ? "bound" : "first touch";
  if (refused != 0 && !lies_in(numa, memory)) {
    munmap(memory, bytes);
    throw Error(ErrorKind::resource, "host memory cannot be bound to NUMA domain " + std::to_string(numa) +
                                         ": " + std::strerror(refused));
  }
  const cudaError_t error =
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error != cudaSuccess) munmap(memory, bytes);
  check(error, "cudaHostRegister");
  host_ = memory;
  void* seen = nullptr;
  check(cudaHostGetDevicePointer(&seen, memory, 0), "cudaHostGetDevicePointer");
  host_by_threads_ = static_cast<std::byte*>(seen);
  return memory;
}

template <typename T>
T* CudaMemoryOps::as_threads_see(T* p) const noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(host_);
  return host_ != nullptr && at < host_bytes_ ? host_by_threads_ + at : p;
}

void CudaMemoryOps::start_copy(CopyWay way, CopyBy by, void* to, const void* from, std::size_t bytes) {
  cudaStream_t stream = copies_[way == CopyWay::to_host ? 1 : 0];
  if (by == CopyBy::threads) {
    kernels::cuda::copy(as_threads_see(to), as_threads_see(from), bytes, stream);
    return check_launch("a copy by threads");
  }
  constexpr cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                      cudaMemcpyDeviceToDevice};
  check(cudaMemcpyAsync(to, from, bytes, kinds[static_cast<int>(way)], stream), "cudaMemcpy");
}

void CudaMemoryOps::finish_copies() {
  for (cudaStream_t copies : copies_) check(cudaStreamSynchronize(copies), "a copy");
}

}  // namespace assay::cuda
