// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "results/h5.hpp"

namespace assay::results::h5 {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{16} << 30;  ///< of one dataset; no run comes near it
constexpr std::uint64_t most_inflation = 256;  ///< of a dataset that another tool has compressed
constexpr std::size_t most_names = 1'000'000;
constexpr std::size_t most_text = std::size_t{1} << 16;  ///< of texts of one length

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorKind::data, message); }

/// Memory for the strings of one dataset: HDF5 asks for it piece by piece, and a damaged length must not get
/// gigabytes.
class Arena {
 public:
  explicit Arena(std::uint64_t budget) : budget_(budget) {}
  static void* take(std::size_t size, void* arena) noexcept {
    try {
      return static_cast<Arena*>(arena)->get(size);
    } catch (...) {
      return nullptr;
    }
  }
  static void give(void* /*memory*/, void* /*arena*/) noexcept {}

 private:
  void* get(std::size_t size) {
    if (size > budget_) return nullptr;
    budget_ -= size;
    if (size > left_) {
      const std::size_t block = std::max<std::size_t>(size, std::size_t{64} << 10);
      blocks_.push_back(std::make_unique<char[]>(block));
      next_ = blocks_.back().get();
      left_ = block;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  std::uint64_t budget_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
};

template <class F>
herr_t collect(void* names, F&& name) noexcept {
  try {
    auto& list = *static_cast<std::vector<std::string>*>(names);
    if (list.size() >= most_names) return -1;
    list.emplace_back(name());
    return 0;
  } catch (...) {
    return -1;
  }
}

herr_t add_link(hid_t /*group*/, const char* name, const H5L_info_t* /*info*/, void* names) {
  return collect(names, [&] { return name; });
}
herr_t add_attribute(hid_t /*object*/, const char* name, const H5A_info_t* /*info*/, void* names) {
  return collect(names, [&] { return name; });
}

bool has_kind(hid_t parent, const std::string& name, H5O_type_t kind) {
  if (!has_link(parent, name)) return false;
  H5L_info_t link{};  // a soft or external link could lead anywhere, so only what lies in the file counts
  if (H5Lget_info(parent, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD) return false;
  H5O_info_t info{};
  return H5Oget_info_by_name2(parent, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
         info.type == kind;
}

Id open_attribute(hid_t object, const std::string& name) {
  return Id(check(H5Aopen(object, name.c_str(), H5P_DEFAULT), "missing attribute " + name));
}

std::size_t product(const std::vector<std::size_t>& shape) {
  std::size_t n = 1;
  for (const std::size_t d : shape) {
    if (d != 0 && n > most_bytes / d) bad("a dataset claims more data than the file holds");
    n *= d;
  }
  return n;
}

Id mutable_string_type() {
  Id type(check(H5Tcopy(H5T_C_S1), "string type"));
  check(H5Tset_size(type, H5T_VARIABLE), "string type");
  check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

}  // namespace

haddr_t address(hid_t object) {
  H5O_info_t info{};
  check(H5Oget_info2(object, &info, H5O_INFO_BASIC), "address");
  return info.addr;
}

bool has_link(hid_t parent, const std::string& name) {
  for (std::size_t end = name.find('/', 1); end != std::string::npos; end = name.find('/', end + 1)) {
    if (H5Lexists(parent, name.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0;
}
bool has_attribute(hid_t object, const std::string& name) { return H5Aexists(object, name.c_str()) > 0; }
bool is_dataset(hid_t parent, const std::string& name) { return has_kind(parent, name, H5O_TYPE_DATASET); }
bool is_group(hid_t parent, const std::string& name) { return has_kind(parent, name, H5O_TYPE_GROUP); }

Id open_group(hid_t parent, const std::string& name) {
  if (!is_group(parent, name)) bad("missing group " + name);
  return Id(check(H5Gopen2(parent, name.c_str(), H5P_DEFAULT), "cannot open group " + name));
}

Id open_dataset(hid_t parent, const std::string& name) {
  if (!is_dataset(parent, name)) bad("missing dataset " + name);
  return Id(check(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), "cannot open dataset " + name));
}

std::vector<std::string> children(hid_t group) {
  std::vector<std::string> names;
  hsize_t at = 0;
  if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, add_link, &names) < 0) {
    names.clear();  // a group without creation order, made by another tool
    at = 0;
    check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add_link, &names), "cannot list a group");
  }
  return names;
}

std::vector<std::string> attributes(hid_t object) {
  std::vector<std::string> names;
  hsize_t at = 0;
  if (H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, add_attribute, &names) < 0) {
    names.clear();
    at = 0;
    check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, add_attribute, &names),
          "cannot list attributes");
  }
  return names;
}

Stored stored_type(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  if (kind == H5T_STRING)
    return H5Tis_variable_str(type) > 0 || size <= most_text ? Stored::string : Stored::other;
  if (kind == H5T_FLOAT) return size == 8 ? Stored::float64 : Stored::other;
  if (kind != H5T_INTEGER) return Stored::other;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  if (size == 1 && !is_signed) return Stored::uint8;
  if (size == 4 && is_signed) return Stored::int32;
  if (size == 8) return is_signed ? Stored::int64 : Stored::uint64;
  return Stored::other;
}

Stored attribute_type(hid_t object, const std::string& name) {
  const Id attribute = open_attribute(object, name);
  const Id space(check(H5Aget_space(attribute), name));
  if (H5Sget_simple_extent_type(space) != H5S_SCALAR) return Stored::other;
  const Id type(check(H5Aget_type(attribute), name));
  const bool fixed = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) <= 0;
  return fixed ? Stored::other : stored_type(type);
}

const char* to_string(Stored stored) noexcept {
  constexpr std::array names{"string", "int32", "int64", "uint64", "float64", "uint8", "another type"};
  return names.at(static_cast<std::size_t>(stored));
}
bool same(Stored stored, Type type) noexcept { return static_cast<int>(stored) == static_cast<int>(type); }

std::vector<std::size_t> shape(hid_t dataset) {
  const Id space(check(H5Dget_space(dataset), "data space"));
  if (H5Sget_simple_extent_type(space) == H5S_NULL) bad("a dataset has no data space");
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "data space");
  return {dims.begin(), dims.begin() + rank};
}

std::vector<std::size_t> check_dataset(hid_t dataset, const std::string& name, Type type,
                                       const Limits& limits) {
  const Id its(check(H5Dget_type(dataset), name));
  const Stored stored = stored_type(its);
  if (!same(stored, type))
    bad("dataset " + name + " holds " + to_string(stored) + ", not " + to_string(type));
  std::vector<std::size_t> dims = shape(dataset);
  const std::uint64_t bytes = product(dims) * std::uint64_t{H5Tget_size(its)};
  const Id creation(check(H5Dget_create_plist(dataset), name));
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_VIRTUAL || (layout == H5D_CONTIGUOUS && H5Pget_external_count(creation) > 0)) {
    bad("dataset " + name + " is outside the file");
  }
  const bool chunked = layout == H5D_CHUNKED;
  const std::uint64_t most = chunked ? limits.file_bytes * most_inflation : limits.file_bytes;
  if (bytes > most || bytes > most_bytes) bad("dataset " + name + " claims more data than the file holds");
  if (bytes > 0 && H5Dget_storage_size(dataset) == 0) bad("dataset " + name + " was never written");
  return dims;
}

void read(hid_t dataset, const std::string& name, Type type, void* data) {
  check(H5Dread(dataset, memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, data),
        "cannot read dataset " + name);
}

std::optional<std::uint64_t> plain_offset(hid_t dataset, Type type, std::uint64_t file_bytes) {
  const Id creation(check(H5Dget_create_plist(dataset), "dataset")),
      stored(check(H5Dget_type(dataset), "dataset"));
  if (H5Pget_layout(creation) != H5D_CONTIGUOUS || H5Pget_external_count(creation) != 0 ||
      H5Tequal(stored, memory_type(type)) <= 0)
    return std::nullopt;
  const haddr_t offset = H5Dget_offset(dataset);
  const std::uint64_t bytes = product(shape(dataset)) * std::uint64_t{size_of(type)};
  // Without elements, or not yet written.
  if (offset == HADDR_UNDEF || bytes == 0 || H5Dget_storage_size(dataset) != bytes) return std::nullopt;
  if (offset > file_bytes || bytes > file_bytes - offset) bad("a dataset is outside the file");
  return offset;
}

namespace {

using EachText = std::function<void(std::size_t, std::string_view)>;

/// Of one length, piece by piece.
void read_fixed_strings(hid_t dataset, hid_t type, const std::string& name, std::size_t n,
                        const EachText& each) {
  const std::size_t length = H5Tget_size(type),
                    most = std::max<std::size_t>(1, (std::size_t{1} << 22) / length);
  std::string characters;
  const Id space(check(H5Dget_space(dataset), name));
  for (std::size_t first = 0; first < n; first += most) {
    const hsize_t begin = first, rows = std::min(most, n - first);
    characters.resize(rows * length);
    const Id memory(check(H5Screate_simple(1, &rows, nullptr), name));
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &begin, nullptr, &rows, nullptr), name);
    check(H5Dread(dataset, type, memory, space, H5P_DEFAULT, characters.data()),
          "cannot read dataset " + name);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::string_view text(&characters[i * length], length);
      each(first + i, text.substr(0, text.find('\0')));
    }
  }
}

}  // namespace

void read_strings(hid_t dataset, const std::string& name, const Limits& limits, const EachText& each) {
  const auto dims = check_dataset(dataset, name, Type::string, limits);
  const std::size_t n = product(dims);
  if (n == 0) return;
  const Id its(check(H5Dget_type(dataset), name));
  if (H5Tis_variable_str(its) <= 0) {
    if (dims.size() != 1) bad("dataset " + name + " is not one-dimensional");
    return read_fixed_strings(dataset, its, name, n, each);
  }
  std::vector<char*> pointers(n, nullptr);
  Arena arena(limits.file_bytes + 64 * n);
  const Id transfer(check(H5Pcreate(H5P_DATASET_XFER), "transfer"));
  check(H5Pset_vlen_mem_manager(transfer, Arena::take, &arena, Arena::give, &arena), "transfer");
  const Id type = mutable_string_type();
  check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, transfer, pointers.data()), "cannot read dataset " + name);
  for (std::size_t i = 0; i < n; ++i) each(i, pointers[i] != nullptr ? pointers[i] : "");
}

std::vector<std::string> read_strings(hid_t dataset, const std::string& name, const Limits& limits) {
  std::vector<std::string> out;
  read_strings(dataset, name, limits, [&](std::size_t, std::string_view text) { out.emplace_back(text); });
  return out;
}

std::string get_string(hid_t object, const std::string& name, const Limits& limits) {
  const Id attribute = open_attribute(object, name);
  if (attribute_type(object, name) != Stored::string) bad("attribute " + name + " is not a string");
  if (H5Aget_storage_size(attribute) > limits.file_bytes) bad("attribute " + name + " is too large");
  const Id type = mutable_string_type();
  char* raw = nullptr;
  check(H5Aread(attribute, type, &raw), "cannot read attribute " + name);
  const std::unique_ptr<char, int (*)(void*)> text(
      raw, [](void* p) { return static_cast<int>(H5free_memory(p)); });
  return text ? std::string(text.get()) : std::string();
}

void get(hid_t object, const std::string& name, Type type, void* value) {
  const Stored stored = attribute_type(object, name);
  if (!same(stored, type))
    bad("attribute " + name + " holds " + to_string(stored) + ", not " + to_string(type));
  check(H5Aread(open_attribute(object, name), memory_type(type), value), "cannot read attribute " + name);
}

bool get_flag(hid_t object, const std::string& name) {
  if (attribute_type(object, name) != Stored::uint8) bad("attribute " + name + " is not true or false");
  std::uint8_t byte = 0;
  check(H5Aread(open_attribute(object, name), H5T_NATIVE_UINT8, &byte), "cannot read attribute " + name);
  return byte != 0;
}

}  // namespace assay::results::h5
