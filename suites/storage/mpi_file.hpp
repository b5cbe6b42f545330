// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <span>
#include <string>

#include "suites/storage/transfer.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

/// A file that the ranks of a group have open together through MPI-IO. Every rank sees the blocks of one rank
/// of a Layout. What fails throws Refused, after all ranks took part.
class MpiFile {
 public:
  /// Collective. The file exists. `collective`: transfers are those of all ranks together, which MPI may
  /// collect into larger ones (collective buffering); else each rank's own.
  MpiFile(Communicator& group, std::string path, const Layout& layout, bool collective);
  ~MpiFile();
  MpiFile(const MpiFile&) = delete;
  MpiFile& operator=(const MpiFile&) = delete;

  /// Collective. Sees the blocks of that rank of the layout from now on.
  void look_at(std::uint64_t rank);
  /// Collective. The first chunk of what it looks at; what is written is synced.
  void transfer(bool write, std::span<std::byte> data);

 private:
  void check(int code, const char* what) const;

  std::string path_;
  Layout layout_;
  bool collective_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_File file_ = MPI_FILE_NULL;
  MPI_Datatype block_ = MPI_DATATYPE_NULL, view_ = MPI_DATATYPE_NULL;
};

}  // namespace assay::storage
