// SPDX-License-Identifier: Apache-2.0
#include "transport/mpi_check.hpp"

#include <algorithm>
#include <string>

namespace assay::mpi {

void fail(int code, const char* call) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  std::string line(text, static_cast<std::size_t>(length));
  std::replace(line.begin(), line.end(), '\n', ' ');
  throw Error(ErrorKind::mpi,
              std::string(call) + ": " + (line.empty() ? "MPI error " + std::to_string(code) : line));
}

void ByteRange::make_large(std::size_t bytes, std::size_t limit) {
  // blocks x `limit` bytes and a tail, as one struct: an int counts the blocks, so that 2^62 bytes can be
  // described.
  const std::size_t blocks = bytes / limit;
  const std::size_t tail = bytes % limit;
  MPI_Datatype block = MPI_DATATYPE_NULL;
  MPI_Datatype body = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(limit), MPI_BYTE, &block), "MPI_Type_contiguous");
  check(MPI_Type_contiguous(static_cast<int>(blocks), block, &body), "MPI_Type_contiguous");
  const int lengths[2] = {1, static_cast<int>(tail)};
  const MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(blocks * limit)};
  const MPI_Datatype types[2] = {body, MPI_BYTE};
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  check(MPI_Type_create_struct(tail == 0 ? 1 : 2, lengths, offsets, types, &whole), "MPI_Type_create_struct");
  check(MPI_Type_commit(&whole), "MPI_Type_commit");
  MPI_Type_free(&block);
  MPI_Type_free(&body);
  type_ = whole;
}

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::int32: return MPI_INT32_T;
    case DataType::uint64: return MPI_UINT64_T;
    case DataType::fp32: return MPI_FLOAT;
    case DataType::fp64: return MPI_DOUBLE;
    case DataType::bf16: break;
  }
  throw Error(ErrorKind::mpi, "MPI has no such data type");
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return MPI_SUM;
    case ReduceOp::min: return MPI_MIN;
    case ReduceOp::max: return MPI_MAX;
    case ReduceOp::bit_and: return MPI_BAND;
    case ReduceOp::bit_or: return MPI_BOR;
  }
  throw Error(ErrorKind::internal, "MPI transport: unknown reduction");
}

}  // namespace assay::mpi
