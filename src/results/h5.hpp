// SPDX-License-Identifier: Apache-2.0
// A thin layer over the serial HDF5 C API: ids that close themselves, errors as exceptions, and the few
// operations the results file needs. Private to src/results.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"

namespace assay::results::h5 {

/// Throws Error(hdf5): `what` and the innermost description on HDF5's error stack; where that is of an error
/// of the operating system, DiskError(hdf5) with its words alone.
[[noreturn]] void fail(const std::string& what);

template <class T>
T check(T result, const char* what) {
  if (result < 0) fail(what);
  return result;
}
template <class T>
T check(T result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

/// Keeps HDF5 from printing its error stack while it lives.
class Quiet {
 public:
  Quiet() noexcept;
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// Owns one HDF5 id of any type.
class Id {
 public:
  Id() noexcept = default;
  explicit Id(hid_t id) noexcept : id_(id) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  operator hid_t() const noexcept { return id_; }
  bool valid() const noexcept { return id_ >= 0; }
  /// Closes now and throws when that fails, which is where a full disk shows.
  void close(const std::string& what) {
    if (id_ >= 0) check(H5Idec_ref(std::exchange(id_, -1)), what);
  }

 private:
  hid_t id_ = -1;
};

/// The element types of the schema.
enum class Type { string, int32, int64, uint64, float64 };
const char* to_string(Type type) noexcept;
Type type_from(const std::string& text);
hid_t memory_type(Type type);
std::size_t size_of(Type type) noexcept;

// Creation. Formats are those of HDF5 1.8, whose metadata carry checksums and which every reader in use
// opens.
Id create_file(const std::string& path);
/// A file in memory that grows by `increment` bytes at a time.
Id create_memory_file(std::size_t increment);
std::string memory_image(hid_t file);
Id create_group(hid_t parent, const std::string& name);
/// `packed`: in chunks, shuffled and deflated, from `packed_from_bytes` on.
Id create_dataset(hid_t parent, const std::string& name, Type type, const std::vector<std::size_t>& shape,
                  const void* data, bool packed = false);
/// `count` texts, which `text` gives one by one, and more than once: a copy of all names of a large machine
/// would not fit. What it gives is valid until it gives the next. Of the same length and packed where there
/// are many and none is long.
Id create_strings(hid_t parent, const std::string& name, std::size_t count,
                  const std::function<std::string_view(std::size_t)>& text);
void create_text(hid_t parent, const std::string& name, const std::string& text);
/// One more hard link to `object`.
void link(hid_t object, hid_t parent, const std::string& name);

/// A dataset that gives a dimension its coordinates. H5DSattach_scale would write the list of what uses a
/// scale again for each use; `finish` writes it once.
class Scale {
 public:
  struct Use {
    hobj_ref_t dataset;
    int dimension;
  };
  Scale() = default;
  Scale(Id dataset, const std::string& name);
  /// One scale for each dimension of `dataset`.
  static void attach(hid_t dataset, const std::vector<std::shared_ptr<Scale>>& dims);
  void link(hid_t parent, const std::string& name) const { h5::link(dataset_, parent, name); }
  void finish();

 private:
  Id dataset_;
  hobj_ref_t reference_{};
  std::vector<Use> uses_;
};

void put(hid_t object, const std::string& name, const std::string& value);
void put(hid_t object, const std::string& name, Type type, const void* value);
inline void put(hid_t object, const std::string& name, const char* value) {
  put(object, name, std::string(value));
}
inline void put(hid_t object, const std::string& name, std::int32_t value) {
  put(object, name, Type::int32, &value);
}
inline void put(hid_t object, const std::string& name, std::int64_t value) {
  put(object, name, Type::int64, &value);
}
inline void put(hid_t object, const std::string& name, std::uint64_t value) {
  put(object, name, Type::uint64, &value);
}
inline void put(hid_t object, const std::string& name, double value) {
  put(object, name, Type::float64, &value);
}
void put_flag(hid_t object, const std::string& name,
              bool value);  ///< uint8, where a parameter is true or false

/// Opens it for reading through its descriptor: no path is looked up. `file` outlives what is returned.
Id open_file(const InputFile& file);

// Reading. Sizes are compared with the size of the file before anything is allocated. A wrong type, rank or
// size is Error(data).

/// How much a dataset of this file may claim.
struct Limits {
  std::uint64_t file_bytes = 0;
};

/// Where an object lies in its file: hard links to one have one address.
haddr_t address(hid_t object);
bool has_link(hid_t parent, const std::string& name);
bool has_attribute(hid_t object, const std::string& name);
bool is_dataset(hid_t parent, const std::string& name);
bool is_group(hid_t parent, const std::string& name);
Id open_group(hid_t parent, const std::string& name);
Id open_dataset(hid_t parent, const std::string& name);
/// Names of the links of a group in the order of their creation.
std::vector<std::string> children(hid_t group);
std::vector<std::string> attributes(hid_t object);

/// What an element type is, as far as the schema can say it.
enum class Stored { string, int32, int64, uint64, float64, uint8, other };
Stored stored_type(hid_t type);
Stored attribute_type(hid_t object, const std::string& name);
bool same(Stored stored, Type type) noexcept;
const char* to_string(Stored stored) noexcept;

std::vector<std::size_t> shape(hid_t dataset);
/// Throws Error(data) unless the dataset has this type; returns its shape, which fits `limits`.
std::vector<std::size_t> check_dataset(hid_t dataset, const std::string& name, Type type,
                                       const Limits& limits);
void read(hid_t dataset, const std::string& name, Type type, void* data);
/// Where its elements lie in their file of `file_bytes`, one after the other and in the machine's own form;
/// nothing where they do not.
std::optional<std::uint64_t> plain_offset(hid_t dataset, Type type, std::uint64_t file_bytes);
std::vector<std::string> read_strings(hid_t dataset, const std::string& name, const Limits& limits);
/// The same, without a copy of them all: `each` gets the place and the text of each.
void read_strings(hid_t dataset, const std::string& name, const Limits& limits,
                  const std::function<void(std::size_t, std::string_view)>& each);

std::string get_string(hid_t object, const std::string& name, const Limits& limits);
void get(hid_t object, const std::string& name, Type type, void* value);
bool get_flag(hid_t object, const std::string& name);

}  // namespace assay::results::h5
