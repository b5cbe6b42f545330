// SPDX-License-Identifier: Apache-2.0
#include "results/h5.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "results/disk.hpp"
#include "results/packed.hpp"
#include "results/text.hpp"

namespace assay::results::h5 {
namespace {

herr_t first_description(unsigned /*n*/, const H5E_error2_t* error, void* text) {
  auto& out = *static_cast<std::string*>(text);
  if (out.empty() && error->desc != nullptr) out = error->desc;
  return 0;
}

/// A file that the disk refused to take stays open within HDF5, whose clean-up at the end of the process
/// would crash on it. All else is closed by its owner.
[[maybe_unused]] const herr_t no_clean_up = H5dont_atexit();

/// The errno in a description by HDF5, which goes on with addresses in memory; 0 if there is none.
int errno_in(const std::string& description) {
  constexpr std::string_view mark = "errno = ";
  const std::size_t at = description.find(mark);
  return at == std::string::npos ? 0 : std::atoi(description.c_str() + at + mark.size());
}

hid_t file_type(Type type) {
  switch (type) {
    case Type::int32: return H5T_STD_I32LE;
    case Type::int64: return H5T_STD_I64LE;
    case Type::uint64: return H5T_STD_U64LE;
    default: return H5T_IEEE_F64LE;
  }
}

Id make_string_type() {
  Id type(check(H5Tcopy(H5T_C_S1), "string type"));
  check(H5Tset_size(type, H5T_VARIABLE), "string type");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

/// One for all attributes: making a type costs more than writing one.
hid_t string_type() {
  static const Id type = make_string_type();
  return type;
}

hid_t scalar() {
  static const Id space(check(H5Screate(H5S_SCALAR), "data space"));
  return space;
}

Id file_access() {
  Id access(check(H5Pcreate(H5P_FILE_ACCESS), "file access"));
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "file format");
  // By default HDF5 asks for 2 KiB at a time, and small pieces are written one by one. What is left of such a
  // block stays in the file.
  check(H5Pset_meta_block_size(access, hsize_t{1} << 14), "file access");
  check(H5Pset_small_data_block_size(access, hsize_t{1} << 14), "file access");
  return access;
}

Id create_with(const std::string& path, hid_t access) {
  Id creation(check(H5Pcreate(H5P_FILE_CREATE), "file creation"));
  check(H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "file creation");
  return Id(check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), "cannot create " + path));
}

Id space_of(const std::vector<std::size_t>& shape) {
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  return Id(check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "data space"));
}

/// Of an object that keeps no times of its changes: each attribute would change them.
void keep_no_times(hid_t creation) { check(H5Pset_obj_track_times(creation, false), "creation"); }

/// For small datasets.
hid_t plain_creation() {
  static const Id creation = [] {
    Id made(check(H5Pcreate(H5P_DATASET_CREATE), "dataset creation"));
    keep_no_times(made);
    check(H5Pset_attr_phase_change(made, 64, 48), "dataset creation");
    return made;
  }();
  return creation;
}

/// Level 1 of deflate: higher ones take several times as long for 2 % less, the last bits of samples are
/// noise. None for what is too small to be packed.
Id packed_creation(const std::vector<std::size_t>& shape, std::size_t value_bytes,
                   std::size_t chunk_values = std::size_t{1} << 16) {
  std::size_t values = shape.empty() ? 0 : 1, row = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    values *= shape[d];
    if (d > 0) row *= shape[d];
  }
  if (values * value_bytes < packed_from_bytes || row > chunk_values ||
      H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0)
    return {};
  Id creation(check(H5Pcopy(plain_creation()), "dataset creation"));
  std::vector<hsize_t> chunk(shape.begin(), shape.end());
  chunk.front() = std::min<hsize_t>(chunk.front(), chunk_values / row);
  check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()), "chunks");
  check(H5Pset_shuffle(creation), "chunks");
  check(H5Pset_deflate(creation, 1), "chunks");
  return creation;
}

Id group_creation() {
  Id creation(check(H5Pcreate(H5P_GROUP_CREATE), "group creation"));
  constexpr unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  check(H5Pset_link_creation_order(creation, order), "group creation");
  check(H5Pset_attr_creation_order(creation, order), "group creation");
  // Beyond 8 attributes HDF5 makes a heap and two trees for each group: of a case with 20 that is most of its
  // time.
  check(H5Pset_attr_phase_change(creation, 64, 48), "group creation");
  keep_no_times(creation);
  return creation;
}

/// Filled up with zeros, which no text holds.
Id fixed_string_type(std::size_t length) {
  Id type(check(H5Tcopy(H5T_C_S1), "string type"));
  check(H5Tset_size(type, length), "string type");
  check(H5Tset_strpad(type, H5T_STR_NULLPAD), "string type");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

/// The length that all get, or 0 where each keeps its own: HDF5 stores these unpacked, and each with 32 bytes
/// more. One long text among short ones would make all long.
std::size_t packed_length(std::size_t count, const std::function<std::string_view(std::size_t)>& text) {
  constexpr std::size_t long_text = 256;
  if (count < packed_from_texts || H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0) return 0;
  std::size_t longest = 1;
  for (std::size_t i = 0; i < count && longest <= long_text; ++i) {
    const std::string_view one = text(i);
    longest = std::max(longest, is_plain(one) ? one.size() : clean_text(one).size());
  }
  return longest <= long_text ? longest : 0;
}

/// `clean_text` to a place that has room for it. Most texts are clean: no copy of each in between.
void copy_clean(std::string_view text, char* to) {
  if (is_plain(text))
    text.copy(to, text.size());
  else
    clean_text(text).copy(to, std::string::npos);
}

Id new_attribute(hid_t object, const std::string& name, hid_t type) {
  return Id(check(H5Acreate2(object, name.c_str(), type, scalar(), H5P_DEFAULT, H5P_DEFAULT),
                  "cannot make attribute " + name));
}

}  // namespace

void fail(const std::string& what) {
  std::string why;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_description, &why);
  H5Eclear2(H5E_DEFAULT);
  if (const int number = errno_in(why); number > 0)
    throw DiskError(ErrorKind::hdf5, what + ": " + std::strerror(number), number);
  throw Error(ErrorKind::hdf5, why.empty() ? what : what + ": " + one_line(why));
}

Quiet::Quiet() noexcept {
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}
Quiet::~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }

hid_t memory_type(Type type) {
  switch (type) {
    case Type::int32: return H5T_NATIVE_INT32;
    case Type::int64: return H5T_NATIVE_INT64;
    case Type::uint64: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_DOUBLE;
  }
}

const char* to_string(Type type) noexcept {
  constexpr std::array names{"string", "int32", "int64", "uint64", "float64"};
  return names.at(static_cast<std::size_t>(type));
}

Type type_from(const std::string& text) {
  for (const Type type : {Type::string, Type::int32, Type::int64, Type::uint64, Type::float64}) {
    if (text == to_string(type)) return type;
  }
  throw Error(ErrorKind::internal, "the schema has an unknown type: " + text);
}

std::size_t size_of(Type type) noexcept {
  return type == Type::int32 ? 4 : type == Type::string ? sizeof(char*) : 8;
}

Id create_file(const std::string& path) { return create_with(path, file_access()); }

Id create_memory_file(std::size_t increment) {
  // The superblock of version 0: HDF5 1.10.8 gives out images of later ones with a checksum that does not
  // fit.
  const Id access(check(H5Pcreate(H5P_FILE_ACCESS), "file access"));
  check(H5Pset_fapl_core(access, increment, false), "memory file");
  return create_with("case", access);
}

std::string memory_image(hid_t file) {
  check(H5Fflush(file, H5F_SCOPE_GLOBAL), "memory file");
  const auto size = static_cast<std::size_t>(check(H5Fget_file_image(file, nullptr, 0), "memory file"));
  std::string image(size, '\0');
  check(H5Fget_file_image(file, image.data(), size), "memory file");
  return image;
}

Id create_group(hid_t parent, const std::string& name) {
  static const Id creation = group_creation();
  return Id(check(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT),
                  "cannot make group " + name));
}

Id create_dataset(hid_t parent, const std::string& name, Type type, const std::vector<std::size_t>& shape,
                  const void* data, bool packed) {
  const Id space = space_of(shape), chunks = packed ? packed_creation(shape, size_of(type)) : Id();
  const hid_t creation = chunks.valid() ? chunks : plain_creation();
  Id set(check(H5Dcreate2(parent, name.c_str(), file_type(type), space, H5P_DEFAULT, creation, H5P_DEFAULT),
               "cannot make dataset " + name));
  if (check(H5Sget_simple_extent_npoints(space), name) > 0) {
    check(H5Dwrite(set, memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
          "cannot write dataset " + name);
  }
  return set;
}

Id create_strings(hid_t parent, const std::string& name, std::size_t count,
                  const std::function<std::string_view(std::size_t)>& text) {
  constexpr std::size_t most_at_once =
      4096;  // of a chunk too: one that is not written at once is unpacked again
  const std::size_t length = packed_length(count, text);
  const Id fixed = length > 0 ? fixed_string_type(length) : Id(),
           chunks = length > 0 ? packed_creation({count}, length, most_at_once) : Id();
  const hid_t type = fixed.valid() ? fixed : string_type();
  const hid_t creation = chunks.valid() ? chunks : plain_creation();
  const Id space = space_of({count});
  Id set(check(H5Dcreate2(parent, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
               "cannot make dataset " + name));
  std::vector<std::string> cleaned;
  std::vector<const char*> pointers;
  std::string characters;
  for (std::size_t first = 0; first < count; first += most_at_once) {
    const std::size_t part = std::min(count - first, most_at_once);
    if (length > 0) {
      characters.assign(part * length, '\0');
      for (std::size_t i = 0; i < part; ++i) copy_clean(text(first + i), &characters[i * length]);
    } else {
      cleaned.clear();
      pointers.clear();
      for (std::size_t i = 0; i < part; ++i) cleaned.push_back(clean_text(text(first + i)));
      for (const std::string& value : cleaned) pointers.push_back(value.c_str());
    }
    const hsize_t begin = first, rows = part;
    const Id memory = space_of({part});
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, nullptr, &rows, nullptr), name);
    const void* data = length > 0 ? static_cast<const void*>(characters.data()) : pointers.data();
    check(H5Dwrite(set, type, memory, space, H5P_DEFAULT, data), "cannot write dataset " + name);
  }
  return set;
}

void create_text(hid_t parent, const std::string& name, const std::string& text) {
  const hid_t type = string_type();
  const Id set(
      check(H5Dcreate2(parent, name.c_str(), type, scalar(), H5P_DEFAULT, plain_creation(), H5P_DEFAULT),
            "cannot make dataset " + name));
  const std::string cleaned = clean_text(text);
  const char* pointer = cleaned.c_str();
  check(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer), "cannot write dataset " + name);
}

void link(hid_t object, hid_t parent, const std::string& name) {
  check(H5Olink(object, parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), "cannot link dataset " + name);
}

void put(hid_t object, const std::string& name, const std::string& value) {
  const hid_t type = string_type();
  const Id attribute = new_attribute(object, name, type);
  const std::string cleaned = clean_text(value);
  const char* pointer = cleaned.c_str();
  check(H5Awrite(attribute, type, &pointer), "cannot write attribute " + name);
}

void put(hid_t object, const std::string& name, Type type, const void* value) {
  const Id attribute = new_attribute(object, name, file_type(type));
  check(H5Awrite(attribute, memory_type(type), value), "cannot write attribute " + name);
}

void put_flag(hid_t object, const std::string& name, bool value) {
  const Id attribute = new_attribute(object, name, H5T_STD_U8LE);
  const std::uint8_t byte = value ? 1 : 0;
  check(H5Awrite(attribute, H5T_NATIVE_UINT8, &byte), "cannot write attribute " + name);
}

}  // namespace assay::results::h5
