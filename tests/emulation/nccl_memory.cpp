// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL allocates and registers.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>

#include "nccl.h"
#include "nccl_machines.hpp"

namespace emulation {
namespace {

std::map<void*, std::size_t>& allocated() {
  static std::map<void*, std::size_t> all;
  return all;
}
std::atomic<unsigned long> used[2];

ncclResult_t enter(ncclComm_t comm, void* data, std::size_t bytes, bool window, void** handle) {
  *handle = nullptr;
  const auto memory = allocated().find(data);
  if (memory == allocated().end() || memory->second < bytes) return ncclInvalidArgument;
  const char* fault = std::getenv("ASSAY_EMULATED_NCCL");
  if (fault != nullptr && std::strcmp(fault, "unregistered") == 0) return ncclSuccess;
  state_of(comm).registered[data] = {bytes, window};
  *handle = data;
  return ncclSuccess;
}
ncclResult_t leave(ncclComm_t comm, void* handle) {
  return state_of(comm).registered.erase(handle) == 1 ? ncclSuccess : ncclInvalidArgument;
}

}  // namespace

void count_registered(const State& s, const void* data) {
  for (const auto& [first, known] : s.registered) {
    const auto* begin = static_cast<const std::byte*>(first);
    if (data >= begin && data < begin + known.bytes) ++used[known.window ? 1 : 0];
  }
}

}  // namespace emulation

using namespace emulation;

unsigned long emulatedNcclRegistered(bool windows) { return used[windows ? 1 : 0]; }
ncclResult_t ncclMemAlloc(void** data, std::size_t bytes) {
  if (cudaMalloc(data, bytes) != cudaSuccess) return ncclUnhandledCudaError;
  allocated()[*data] = bytes;
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void* data) {
  if (allocated().erase(data) == 0) return ncclInvalidArgument;
  return cudaFree(data) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, std::size_t bytes, void** handle) {
  return enter(comm, data, bytes, false, handle);
}
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) { return leave(comm, handle); }
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* data, std::size_t bytes, ncclWindow_t* window,
                                    int flags) {
  if (flags != NCCL_WIN_COLL_SYMMETRIC) return ncclInvalidArgument;
  return enter(comm, data, bytes, true, reinterpret_cast<void**>(window));
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) { return leave(comm, window); }
