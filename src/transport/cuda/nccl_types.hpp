// SPDX-License-Identifier: Apache-2.0
// Private to the NCCL transport.
#pragma once

#include <nccl.h>

#include "base/error.hpp"
#include "transport/communicator.hpp"

namespace assay::cuda {

inline ncclDataType_t nccl_type(DataType type) {
  switch (type) {
    case DataType::int32: return ncclInt32;
    case DataType::uint64: return ncclUint64;
    case DataType::fp32: return ncclFloat32;
    case DataType::fp64: return ncclFloat64;
    case DataType::bf16: return ncclBfloat16;
  }
  throw Error(ErrorKind::internal, "NCCL: unknown data type");
}

inline ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::bit_and:
    case ReduceOp::bit_or: break;
  }
  throw Error(ErrorKind::mpi, "NCCL has no reduction of bits");
}

}  // namespace assay::cuda
