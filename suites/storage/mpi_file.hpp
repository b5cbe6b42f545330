// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <span>
#include <string>

#include "suites/storage/shared_file.hpp"
#include "suites/storage/transfer.hpp"
#include "transport/communicator.hpp"

namespace assay::storage {

/// The ranks of `group` as MPI counts them. Collective over it alone.
MPI_Comm communicator_of(Communicator& group);

/// Through MPI-IO.
class MpiFile final : public SharedFile {
 public:
  /// Collective. The file exists. `collective`: transfers are those of all ranks together, which MPI may
  /// collect into larger ones (collective buffering); else each rank's own.
  MpiFile(Communicator& group, std::string path, const Layout& layout, bool collective);
  ~MpiFile() override;
  MpiFile(const MpiFile&) = delete;
  MpiFile& operator=(const MpiFile&) = delete;

  void look_at(std::uint64_t rank) override;
  void transfer(bool write, std::span<std::byte> data) override;
  void close() override;
  void forget() noexcept override { file_ = MPI_FILE_NULL; }

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
