/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NCCL that assay uses, between processes of one host: for tests without a GPU. Names, arguments
 * and meaning are NCCL's. */
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_VERSION_CODE 22809
#define NCCL_VERSION(X, Y, Z) (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))
#define NCCL_SPLIT_NOCOLOR (-1)

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclInt32 = 2,
  ncclUint64 = 5,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3 };
struct ncclWindow_vidmem;
using ncclWindow_t = ncclWindow_vidmem*;
#define NCCL_WIN_COLL_SYMMETRIC 0x01
struct ncclConfig_t {
  int blocking = 1;
  int splitShare = 0;
};
#define NCCL_CONFIG_INITIALIZER \
  {}

extern "C" {
/// That NCCL would have started for calls of communicators that do not block.
unsigned long emulatedNcclThreads();
/// That were made and neither destroyed nor aborted. With ASSAY_EMULATED_NCCL "no-init" and "no-split"
/// setting up never ends, with "failed-split" it fails; what was to be made is stored all the same.
long emulatedNcclCommunicators();
/// Operations whose buffers were registered with their communicator: as buffers, and as windows.
unsigned long emulatedNcclRegistered(bool windows);
ncclResult_t ncclGetVersion(int*);
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int ranks, ncclUniqueId, int rank, ncclConfig_t*);
ncclResult_t ncclCommSplit(ncclComm_t, int color, int key, ncclComm_t*, ncclConfig_t*);
ncclResult_t ncclCommFinalize(ncclComm_t);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclCommAbort(ncclComm_t);
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t*);
const char* ncclGetErrorString(ncclResult_t);
const char* ncclGetLastError(ncclComm_t);
ncclResult_t ncclAllReduce(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclReduceScatter(const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                               cudaStream_t);
ncclResult_t ncclAllGather(const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
ncclResult_t ncclBroadcast(const void*, void*, std::size_t, ncclDataType_t, int root, ncclComm_t,
                           cudaStream_t);
ncclResult_t ncclSend(const void*, std::size_t, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclRecv(void*, std::size_t, ncclDataType_t, int peer, ncclComm_t, cudaStream_t);
ncclResult_t ncclMemAlloc(void**, std::size_t);
ncclResult_t ncclMemFree(void*);
/// Refuse what ncclMemAlloc did not allocate. Null handles where ASSAY_EMULATED_NCCL is "unregistered".
ncclResult_t ncclCommRegister(ncclComm_t, void*, std::size_t, void** handle);
ncclResult_t ncclCommDeregister(ncclComm_t, void* handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t, void*, std::size_t, ncclWindow_t*, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
}
