// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstddef>

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay::mpi {

/// Throws Error(mpi) "<call>: <what MPI says>".
[[noreturn]] void fail(int code, const char* call);

/// Turns the return code of an MPI call into an exception. `call` names it, with what a person needs to find
/// the cause.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    fail(code, call);
}

/// A count and type that describe `bytes` contiguous bytes, which may be more than an int can count. Small
/// buffers are plain MPI_BYTE; beyond `limit` a derived type is made and released again with this object (MPI
/// keeps it alive for transfers under way).
class ByteRange {
 public:
  ByteRange(std::size_t bytes, std::size_t limit) {
    if (bytes <= limit) [[likely]]
      count_ = static_cast<int>(bytes);
    else
      make_large(bytes, limit);
  }
  ~ByteRange() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  ByteRange(const ByteRange&) = delete;
  ByteRange& operator=(const ByteRange&) = delete;

  int count() const noexcept { return count_; }
  MPI_Datatype type() const noexcept { return type_; }

 private:
  void make_large(std::size_t bytes, std::size_t limit);
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
};

/// Throws Error(mpi) for bf16, which MPI does not know.
MPI_Datatype mpi_type(DataType type);
MPI_Op mpi_op(ReduceOp op);

}  // namespace assay::mpi
