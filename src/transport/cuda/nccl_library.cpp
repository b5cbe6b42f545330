// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/nccl_library.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace assay::cuda {
namespace {

constexpr int oldest = NCCL_VERSION(2, 14, 3);  ///< the first with communicators that do not block

/// Looks functions up, and remembers the first that is missing.
struct Lookup {
  void* handle;
  std::string missing;

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr && missing.empty()) missing = name;
  }
};

void fill(NcclLibrary& library, Lookup& lookup) {
  lookup.find(library.get_version, "ncclGetVersion");
  lookup.find(library.get_unique_id, "ncclGetUniqueId");
  lookup.find(library.comm_init_rank_config, "ncclCommInitRankConfig");
  lookup.find(library.comm_finalize, "ncclCommFinalize");
  lookup.find(library.comm_destroy, "ncclCommDestroy");
  lookup.find(library.comm_abort, "ncclCommAbort");
  lookup.find(library.comm_get_async_error, "ncclCommGetAsyncError");
  lookup.find(library.get_error_string, "ncclGetErrorString");
  lookup.find(library.get_last_error, "ncclGetLastError");
  lookup.find(library.all_reduce, "ncclAllReduce");
  lookup.find(library.reduce_scatter, "ncclReduceScatter");
  lookup.find(library.all_gather, "ncclAllGather");
  lookup.find(library.broadcast, "ncclBroadcast");
  lookup.find(library.send, "ncclSend");
  lookup.find(library.recv, "ncclRecv");
  lookup.find(library.group_start, "ncclGroupStart");
  lookup.find(library.group_end, "ncclGroupEnd");
}

struct Opened {
  NcclLibrary library;
  bool usable = false;
  std::string why;
};

Opened open() {
  Opened out;
  void* handle = RTLD_DEFAULT;
  if (dlsym(handle, "ncclGetVersion") == nullptr) {
    const char* wish = std::getenv("ASSAY_NCCL_LIBRARY");
    out.library.file = wish != nullptr && *wish != '\0' ? wish : "libnccl.so.2";
    handle = dlopen(out.library.file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* error = dlerror();
      out.why = "NCCL cannot be opened: " + std::string(error != nullptr ? error : out.library.file.c_str());
      return out;
    }
  }
  Lookup lookup{handle, {}};
  fill(out.library, lookup);
  const std::string name = out.library.file.empty() ? "the NCCL in this program" : out.library.file;
  if (!lookup.missing.empty()) {
    out.why = name + " has no " + lookup.missing;
    return out;
  }
  if (out.library.get_version(&out.library.version) != ncclSuccess || out.library.version < oldest) {
    out.why = name + " is NCCL " + out.library.version_text() + ", and 2.14.3 is needed";
    return out;
  }
#ifdef ASSAY_NCCL_SPLIT
  if (out.library.version >= NCCL_VERSION(2, 18, 1)) lookup.find(out.library.comm_split, "ncclCommSplit");
#endif
  out.usable = true;
  return out;
}

}  // namespace

std::string nccl_version_text(int code) {
  const int major = code >= 10000 ? code / 10000 : code / 1000;
  const int minor = code >= 10000 ? code / 100 % 100 : code / 100 % 10;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

std::string NcclLibrary::version_text() const { return nccl_version_text(version); }

const NcclLibrary* nccl_library(std::string& why) {
  static const Opened opened = open();
  why = opened.why;
  return opened.usable ? &opened.library : nullptr;
}

}  // namespace assay::cuda
