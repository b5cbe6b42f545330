// SPDX-License-Identifier: Apache-2.0
// HDF5 on a file that is open already: a virtual file driver that reads through the descriptor. It opens no
// second file, so that a link or a virtual dataset leads nowhere, and reports what the system cannot read as
// an error of HDF5.
#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>

#include "results/h5.hpp"

namespace assay::results::h5 {
namespace {

/// What a file is called to HDF5. Absolute, which spares it the question for the current directory.
constexpr const char* open_name = "/open";

struct Input {
  const InputFile* file;
};

struct Driven {
  H5FD_t base;  // first: HDF5 identifies the file by its address
  const InputFile* file;
  haddr_t allocated;
};

H5FD_t* open_input(const char* name, unsigned flags, hid_t access, haddr_t /*largest*/) {
  const auto* input = static_cast<const Input*>(H5Pget_driver_info(access));
  if (input == nullptr || std::strcmp(name, open_name) != 0 ||
      (flags & (H5F_ACC_RDWR | H5F_ACC_CREAT | H5F_ACC_TRUNC)) != 0)
    return nullptr;
  return &std::make_unique<Driven>(Driven{{}, input->file, 0}).release()->base;
}

Driven& driven(H5FD_t* file) { return *reinterpret_cast<Driven*>(file); }
const Driven& driven(const H5FD_t* file) { return *reinterpret_cast<const Driven*>(file); }

herr_t close_input(H5FD_t* file) {
  delete &driven(file);
  return 0;
}

herr_t features(const H5FD_t* /*file*/, unsigned long* flags) {
  *flags = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t /*type*/) { return driven(file).allocated; }

herr_t allocate(H5FD_t* file, H5FD_mem_t /*type*/, haddr_t end) {
  driven(file).allocated = end;
  return 0;
}

haddr_t end_of(const H5FD_t* file, H5FD_mem_t /*type*/) { return driven(file).file->bytes(); }

/// Behind the end of the file HDF5 expects zeros.
herr_t read_input(H5FD_t* file, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t at, std::size_t bytes,
                  void* to) {
  if (at == HADDR_UNDEF || at + bytes < at) return -1;
  try {
    const std::size_t done = driven(file).file->read(at, to, bytes);
    std::memset(static_cast<char*>(to) + done, 0, bytes - done);
    return 0;
  } catch (const Error&) {
    return -1;
  }
}

herr_t write_input(H5FD_t* /*file*/, H5FD_mem_t /*type*/, hid_t /*transfer*/, haddr_t /*at*/,
                   std::size_t /*bytes*/, const void* /*from*/) {
  return -1;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = H5_VFD_RESERVED + 1;
#endif
  driver.name = "assay-input";
  driver.maxaddr = static_cast<haddr_t>(INT64_MAX);
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Input);
  driver.open = open_input;
  driver.close = close_input;
  driver.query = features;
  driver.get_eoa = allocated;
  driver.set_eoa = allocate;
  driver.get_eof = end_of;
  driver.read = read_input;
  driver.write = write_input;
  std::fill(std::begin(driver.fl_map), std::end(driver.fl_map), H5FD_MEM_DEFAULT);
  return driver;
}

}  // namespace

Id open_file(const InputFile& file) {
  file.bytes();  // throws where it could not be opened
  const H5FD_class_t driver = driver_class();
  const Id registered(check(H5FDregister(&driver), "file driver"));
  const Id access(check(H5Pcreate(H5P_FILE_ACCESS), "file access"));
  const Input input{&file};
  check(H5Pset_driver(access, registered, &input), "file access");
  return Id(check(H5Fopen(open_name, H5F_ACC_RDONLY, access), "HDF5 cannot open it"));
}

}  // namespace assay::results::h5
