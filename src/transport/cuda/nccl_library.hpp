// SPDX-License-Identifier: Apache-2.0
// NCCL as this process can use it: opened where it is needed, so that the program starts where there is none.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>

// What came later than the oldest NCCL that this compiles with (2.14); the header decides what is known here,
// the library what is called.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1)
#define ASSAY_NCCL_SPLIT 1
#endif

namespace assay::cuda {

/// The functions of one NCCL, with the types that its header gives them. Null where the library is older than
/// the function.
struct NcclLibrary {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
#ifdef ASSAY_NCCL_SPLIT
  decltype(&ncclCommSplit) comm_split = nullptr;  ///< null below 2.18.1
#endif
  // Written out, since older headers lack them. Null below 2.19.
  ncclResult_t (*mem_alloc)(void** data, std::size_t bytes) = nullptr;
  ncclResult_t (*mem_free)(void* data) = nullptr;
  ncclResult_t (*comm_register)(ncclComm_t, void* data, std::size_t bytes, void** handle) = nullptr;
  ncclResult_t (*comm_deregister)(ncclComm_t, void* handle) = nullptr;
  // Null below 2.27; a window (ncclWindow_t) is a pointer.
  ncclResult_t (*comm_window_register)(ncclComm_t, void* data, std::size_t bytes, void** window,
                                       int flags) = nullptr;
  ncclResult_t (*comm_window_deregister)(ncclComm_t, void* window) = nullptr;
  int version = 0;  ///< as ncclGetVersion says: 22809

  std::string version_text() const;  ///< "2.28.9"
};

/// What can be used here; null, and the reason in `why`, when nothing can. The file that the environment
/// variable ASSAY_NCCL_LIBRARY names, else functions that the process already has, else libnccl.so.2. Tried
/// once.
const NcclLibrary* nccl_library(std::string& why);

/// "2.28.9" of 22809, and "2.8.4" of 2804, as versions up to 2.8 are counted.
std::string nccl_version_text(int code);

}  // namespace assay::cuda
