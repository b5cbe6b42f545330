// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/nccl_library.hpp"

#include <optional>

#include "base/error.hpp"
#include "base/shared_object.hpp"

namespace assay::cuda {
namespace {

constexpr int oldest = NCCL_VERSION(2, 14, 3);  ///< the first with communicators that do not block

void fill(NcclLibrary& library, const SharedObject& object) {
  object.load(library.get_version, "ncclGetVersion");
  object.load(library.get_unique_id, "ncclGetUniqueId");
  object.load(library.comm_init_rank_config, "ncclCommInitRankConfig");
  object.load(library.comm_finalize, "ncclCommFinalize");
  object.load(library.comm_destroy, "ncclCommDestroy");
  object.load(library.comm_abort, "ncclCommAbort");
  object.load(library.comm_get_async_error, "ncclCommGetAsyncError");
  object.load(library.get_error_string, "ncclGetErrorString");
  object.load(library.get_last_error, "ncclGetLastError");
  object.load(library.all_reduce, "ncclAllReduce");
  object.load(library.reduce_scatter, "ncclReduceScatter");
  object.load(library.all_gather, "ncclAllGather");
  object.load(library.broadcast, "ncclBroadcast");
  object.load(library.send, "ncclSend");
  object.load(library.recv, "ncclRecv");
  object.load(library.group_start, "ncclGroupStart");
  object.load(library.group_end, "ncclGroupEnd");
}

/// Throws Error(device) with the reason when there is none that serves.
NcclLibrary open() {
  const SharedObject object("ASSAY_NCCL_LIBRARY", {"libnccl.so.2"}, "ncclGetVersion");
  NcclLibrary library;
  fill(library, object);
  if (library.get_version(&library.version) != ncclSuccess || library.version < oldest)
    throw Error(ErrorKind::device,
                object.name() + " is NCCL " + library.version_text() + ", and 2.14.3 is needed");
#ifdef ASSAY_NCCL_SPLIT
  if (library.version >= NCCL_VERSION(2, 18, 1))
    library.comm_split = reinterpret_cast<decltype(library.comm_split)>(object.find("ncclCommSplit"));
#endif
  if (library.version >= NCCL_VERSION(2, 19, 1)) {
    object.load(library.mem_alloc, "ncclMemAlloc");
    object.load(library.mem_free, "ncclMemFree");
    object.load(library.comm_register, "ncclCommRegister");
    object.load(library.comm_deregister, "ncclCommDeregister");
  }
  if (library.version >= NCCL_VERSION(2, 27, 3)) {
    object.load(library.comm_window_register, "ncclCommWindowRegister");
    object.load(library.comm_window_deregister, "ncclCommWindowDeregister");
  }
  return library;
}

struct Opened {
  std::optional<NcclLibrary> library;
  std::string why;

  Opened() {
    try {
      library = open();
    } catch (const Error& e) {
      why = std::string("NCCL cannot be used: ") + e.what();
    }
  }
};

}  // namespace

std::string nccl_version_text(int code) {
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

std::string NcclLibrary::version_text() const { return nccl_version_text(version); }

const NcclLibrary* nccl_library(std::string& why) {
  static const Opened opened;
  why = opened.why;
  return opened.library ? &*opened.library : nullptr;
}

}  // namespace assay::cuda
