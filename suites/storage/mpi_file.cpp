// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/mpi_file.hpp"

#include <cerrno>
#include <vector>

#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

int reason_of(int error_class) {
  switch (error_class) {
    case MPI_ERR_NO_SPACE: return ENOSPC;
    case MPI_ERR_QUOTA: return EDQUOT;
    case MPI_ERR_IO: return EIO;
    case MPI_ERR_READ_ONLY: return EROFS;
    case MPI_ERR_ACCESS: return EACCES;
    case MPI_ERR_NO_SUCH_FILE: return ENOENT;
    default: return 0;
  }
}

}  // namespace

MPI_Comm communicator_of(Communicator& group) {
  int mine = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  std::vector<int> ranks(static_cast<std::size_t>(group.size()));
  group.all_gather(&mine, ranks.data(), sizeof mine);
  MPI_Group world{}, members{};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, group.size(), ranks.data(), &members);
  MPI_Comm comm = MPI_COMM_NULL;
  constexpr int tag = 17;
  MPI_Comm_create_group(MPI_COMM_WORLD, members, tag, &comm);
  MPI_Group_free(&members);
  MPI_Group_free(&world);
  return comm;
}

MpiFile::MpiFile(Communicator& group, std::string path, const Layout& layout, bool collective)
    : path_(std::move(path)), layout_(layout), collective_(collective), comm_(communicator_of(group)) {
  MPI_Info hints{};
  MPI_Info_create(&hints);  // ROMIO's names; others use what the calls say
  MPI_Info_set(hints, "romio_cb_write", collective ? "enable" : "disable");
  MPI_Info_set(hints, "romio_cb_read", collective ? "enable" : "disable");
  const int code = MPI_File_open(comm_, path_.c_str(), MPI_MODE_RDWR, hints, &file_);
  MPI_Info_free(&hints);
  if (code != MPI_SUCCESS) {
    file_ = MPI_FILE_NULL;
    MPI_Comm_free(&comm_);
    check(code, "open");
  }
  MPI_Type_contiguous(static_cast<int>(layout.block_bytes), MPI_BYTE, &block_);
  const auto every = static_cast<MPI_Aint>(layout.block_bytes * layout.ranks);
  MPI_Type_create_resized(block_, 0, every, &view_);
  MPI_Type_commit(&view_);
}

MpiFile::~MpiFile() {
  if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
  if (view_ != MPI_DATATYPE_NULL) MPI_Type_free(&view_);
  if (block_ != MPI_DATATYPE_NULL) MPI_Type_free(&block_);
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

void MpiFile::close() {
  if (file_ != MPI_FILE_NULL) check(MPI_File_close(&file_), "close");
}

void MpiFile::look_at(std::uint64_t rank) {
  check(MPI_File_set_view(file_, static_cast<MPI_Offset>(rank * layout_.block_bytes), MPI_BYTE, view_,
                          "native", MPI_INFO_NULL),
        "view");
}

void MpiFile::transfer(bool write, std::span<std::byte> data) {
  const auto bytes = static_cast<int>(data.size());  // a chunk: 128 MiB at most
  MPI_Status status{};
  int code = MPI_SUCCESS;
  if (write)
    code = (collective_ ? MPI_File_write_at_all : MPI_File_write_at)(file_, 0, data.data(), bytes, MPI_BYTE,
                                                                     &status);
  else
    code = (collective_ ? MPI_File_read_at_all : MPI_File_read_at)(file_, 0, data.data(), bytes, MPI_BYTE,
                                                                   &status);
  const int synced = write ? MPI_File_sync(file_) : MPI_SUCCESS;  // by all, also where the writing failed
  check(code, write ? "write" : "read");
  check(synced, "sync");
  int moved = 0;
  MPI_Get_count(&status, MPI_BYTE, &moved);
  if (moved != bytes)
    throw Refused(path_ + ": MPI-IO " + (write ? "write: " : "read: ") + std::to_string(moved) + " of " +
                      std::to_string(bytes) + " bytes",
                  0, true);
}

void MpiFile::check(int code, const char* what) const {
  if (code == MPI_SUCCESS) return;
  int error_class = MPI_ERR_OTHER, length = 0;
  MPI_Error_class(code, &error_class);
  char text[MPI_MAX_ERROR_STRING] = {};
  MPI_Error_string(code, text, &length);
  throw Refused(path_ + ": MPI-IO " + what + ": " + text, reason_of(error_class));
}

}  // namespace assay::storage
