// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/hdf5_file.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/shared_object.hpp"
#include "suites/storage/mpi_file.hpp"
#include "suites/storage/refused.hpp"

namespace assay::storage {
namespace {

// As HDF5 has them since 1.10.
using Id = std::int64_t;
using Size = unsigned long long;
constexpr unsigned truncate = 2;
constexpr int all_files = 1, select_set = 0, never_fill = 1;

#if defined(OPEN_MPI)
constexpr const char* libraries[] = {"libhdf5_openmpi.so.103", "libhdf5_openmpi.so.310"};
constexpr const char* package = "libhdf5-openmpi";
#else
constexpr const char* libraries[] = {"libhdf5_mpich.so.103", "libhdf5_mpich.so.310"};
constexpr const char* package = "libhdf5-mpich";
#endif

struct Hdf5 {
  SharedObject object{"ASSAY_HDF5_LIBRARY", {std::begin(libraries), std::end(libraries)}, "H5Pset_fapl_mpio"};
  int (*open)() = nullptr;
  int (*quiet)(Id, void*, void*) = nullptr;
  Id *file_access = nullptr, *dataset_create = nullptr, *dataset_transfer = nullptr, *byte = nullptr;
  Id (*make_list)(Id) = nullptr;
  int (*close_list)(Id) = nullptr;
  int (*use_mpi)(Id, MPI_Comm, MPI_Info) = nullptr;
  int (*transfers)(Id, int) = nullptr;
  int (*fill_time)(Id, int) = nullptr;
  Id (*make_file)(const char*, unsigned, Id, Id) = nullptr;
  int (*flush)(Id, int) = nullptr;
  int (*close_file)(Id) = nullptr;
  Id (*make_space)(int, const Size*, const Size*) = nullptr;
  int (*select)(Id, int, const Size*, const Size*, const Size*, const Size*) = nullptr;
  int (*close_space)(Id) = nullptr;
  Id (*make_dataset)(Id, const char*, Id, Id, Id, Id, Id) = nullptr;
  int (*write)(Id, Id, Id, Id, Id, const void*) = nullptr;
  int (*read)(Id, Id, Id, Id, Id, void*) = nullptr;
  std::uint64_t (*offset)(Id) = nullptr;
  int (*close_dataset)(Id) = nullptr;

  Hdf5() {
    object.load(open, "H5open"), object.load(quiet, "H5Eset_auto2");
    object.load(file_access, "H5P_CLS_FILE_ACCESS_ID_g");
    object.load(dataset_create, "H5P_CLS_DATASET_CREATE_ID_g");
    object.load(dataset_transfer, "H5P_CLS_DATASET_XFER_ID_g"), object.load(byte, "H5T_NATIVE_UCHAR_g");
    object.load(make_list, "H5Pcreate"), object.load(close_list, "H5Pclose");
    object.load(use_mpi, "H5Pset_fapl_mpio"), object.load(transfers, "H5Pset_dxpl_mpio");
    object.load(fill_time, "H5Pset_fill_time"), object.load(make_file, "H5Fcreate");
    object.load(flush, "H5Fflush"), object.load(close_file, "H5Fclose");
    object.load(make_space, "H5Screate_simple"), object.load(select, "H5Sselect_hyperslab");
    object.load(close_space, "H5Sclose"), object.load(make_dataset, "H5Dcreate2");
    object.load(write, "H5Dwrite"), object.load(read, "H5Dread");
    object.load(offset, "H5Dget_offset"), object.load(close_dataset, "H5Dclose");
    if (open() < 0) throw Error(ErrorKind::device, "it does not start");
    quiet(0, nullptr, nullptr);  // what fails is said by this program
  }
};

const Hdf5& hdf5() {
  static const Hdf5 one;
  return one;
}

class Hdf5File final : public SharedFile {
 public:
  Hdf5File(Communicator& group, const std::string& path, const Layout& layout, bool collective)
      : path_(path), layout_(layout), comm_(communicator_of(group)) {
    try {
      make(collective);
    } catch (...) {
      forget();  // the others may go on with the file
      release();
      throw;
    }
  }
  ~Hdf5File() override { release(); }
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  void look_at(std::uint64_t rank) override {
    const Size start = rank * layout_.block_bytes, count = layout_.chunk_blocks, block = layout_.block_bytes;
    const Size every = layout_.block_bytes * layout_.ranks;
    check(h5_.select(space_, select_set, &start, &every, &count, &block) >= 0, "selection");
  }

  void transfer(bool write, std::span<std::byte> data) override {
    const int moved = write ? h5_.write(set_, *h5_.byte, memory_, space_, how_, data.data())
                            : h5_.read(set_, *h5_.byte, memory_, space_, how_, data.data());
    const int flushed = write ? h5_.flush(file_, all_files) : 0;  // by all, also where the writing failed
    check(moved >= 0, write ? "write" : "read");
    check(flushed >= 0, "flush");
  }

  void close() override { check(close_file(), "close"); }

  void forget() noexcept override { file_ = set_ = -1; }

  std::uint64_t begins_at() const override { return h5_.offset(set_); }

 private:
  void make(bool collective) {
    access_ = h5_.make_list(*h5_.file_access);
    create_ = h5_.make_list(*h5_.dataset_create);
    how_ = h5_.make_list(*h5_.dataset_transfer);
    check(h5_.use_mpi(access_, comm_, MPI_INFO_NULL) >= 0 && h5_.transfers(how_, collective ? 1 : 0) >= 0 &&
              h5_.fill_time(create_, never_fill) >= 0,
          "property lists");
    file_ = h5_.make_file(path_.c_str(), truncate, 0, access_);
    check(file_ >= 0, "open");
    const Size whole = layout_.end(), part = layout_.chunk_bytes();
    space_ = h5_.make_space(1, &whole, nullptr);
    memory_ = h5_.make_space(1, &part, nullptr);
    set_ = h5_.make_dataset(file_, "records", *h5_.byte, space_, 0, create_, 0);
    check(space_ >= 0 && memory_ >= 0 && set_ >= 0, "data set");
  }

  /// False where it failed.
  bool close_file() noexcept {
    const Id set = std::exchange(set_, -1), file = std::exchange(file_, -1);
    const bool set_closed = set < 0 || h5_.close_dataset(set) >= 0;
    return (file < 0 || h5_.close_file(file) >= 0) && set_closed;
  }

  void release() noexcept {
    for (const Id space : {space_, memory_})
      if (space >= 0) h5_.close_space(space);
    close_file();
    for (const Id list : {access_, create_, how_})
      if (list >= 0) h5_.close_list(list);
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }

  void check(bool right, const char* what) const {
    if (!right) throw Refused(path_ + ": HDF5 " + what + " failed", 0, true);
  }

  const Hdf5& h5_ = hdf5();
  std::string path_;
  Layout layout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  Id access_ = -1, create_ = -1, how_ = -1, file_ = -1, space_ = -1, memory_ = -1, set_ = -1;
};

}  // namespace

std::string why_no_parallel_hdf5() {
  try {
    hdf5();
    return "";
  } catch (const Error& e) {
    return fmt::format("no parallel HDF5 (package {}-103 or -310): {}", package, e.what());
  }
}

std::unique_ptr<SharedFile> open_hdf5(Communicator& group, const std::string& path, const Layout& layout,
                                      bool collective) {
  return std::make_unique<Hdf5File>(group, path, layout, collective);
}

}  // namespace assay::storage
