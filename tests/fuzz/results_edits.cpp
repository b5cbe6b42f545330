// SPDX-License-Identifier: Apache-2.0
// A results file that HDF5 itself finds good, with a checksum that fits, and with anything else inside: what
// our own reading must stand. The input is a list of edits to a good file.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "results/disk.hpp"
#include "results/json_io.hpp"
#include "results/schema.hpp"
#include "tests/fuzz/clean.hpp"
#include "tests/results/example_results.hpp"

namespace assay::fuzz {
namespace {

/// The input, byte by byte; zeros when it is used up.
class Input {
 public:
  explicit Input(const std::string& bytes) : bytes_(bytes) {}
  bool empty() const noexcept { return at_ >= bytes_.size(); }
  unsigned byte() { return empty() ? 0 : static_cast<unsigned char>(bytes_[at_++]); }
  std::size_t below(std::size_t n) { return n == 0 ? 0 : (byte() | byte() << 8) % n; }
  std::uint64_t word() {
    constexpr std::array<std::uint64_t, 8> odd{
        0, 1, ~0ULL, 1ULL << 31, 1ULL << 63, 0x7fffffffULL, 0x7ff0000000000000ULL, 0x7ff8000000000000ULL};
    const unsigned kind = byte();
    if (kind < 64) return odd.at(kind % odd.size());
    if (kind < 128) return byte();
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  std::string text() {
    constexpr std::array<const char*, 10> odd{
        "", "pass", "FAIL", "running", "[1,2]", "{\"a\":null}", "../x", "a/b", "%s%n", "\x1b[31m\xff\xfe\n"};
    const unsigned kind = byte();
    if (kind < 128) return odd.at(kind % odd.size());
    std::string out;
    for (std::size_t n = kind - 128; n > 0 && !empty(); --n) out += static_cast<char>(byte());
    return out;
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

struct Good {
  std::string image;  ///< without the trailer
  std::vector<std::string> objects;
};

herr_t add_path(hid_t, const char* name, const H5O_info_t*, void* list) {
  static_cast<std::vector<std::string>*>(list)->emplace_back(
      std::string(name) == "." ? "/" : std::string("/") + name);
  return 0;
}

hid_t open_image(const std::string& image) {
  std::string copy = image;
  return H5LTopen_file_image(copy.data(), copy.size(), H5LT_FILE_IMAGE_OPEN_RW);
}

const Good& good_file() {
  static const Good good = [] {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const std::string path = scratch_directory() + "/good.h5";
    results::example::write(path, 2);
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    Good out;
    out.image = text.str().substr(0, text.str().size() - 32);
    const hid_t file = open_image(out.image);
    if (file < 0) broken("the good file does not open");
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add_path, &out.objects, H5O_INFO_BASIC);
    H5Fclose(file);
    return out;
  }();
  return good;
}

class Editor {
 public:
  Editor(hid_t file, Input& input) : file_(file), input_(input), objects_(good_file().objects) {}

  void edit() {
    const std::string path = objects_[input_.below(objects_.size())];
    switch (input_.byte() % 10) {
      case 0: H5Ldelete(file_, path.c_str(), H5P_DEFAULT); break;
      case 1: edit_attribute(path); break;
      case 2:
      case 3:
      case 4: change_value(path); break;
      case 5:
        H5Ldelete(file_, path.c_str(), H5P_DEFAULT);
        new_dataset(path);
        break;
      case 6: link(path, objects_[input_.below(objects_.size())]); break;
      case 7: new_dataset(path + "/" + input_.text()); break;
      case 8: change_text(input_.byte() % 2 == 0 ? "/config" : "/verdict/json"); break;
      default: set_attribute(path, input_.byte() % 2 == 0 ? "unit" : input_.text());
    }
  }

 private:
  hid_t string_type() {
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
  }
  hid_t any_type() {
    const std::array types{H5T_STD_I32LE,  H5T_STD_I64LE, H5T_STD_U64LE,
                           H5T_IEEE_F64LE, H5T_STD_I8LE,  H5T_IEEE_F32LE};
    const std::size_t which = input_.below(types.size() + 3);
    if (which < types.size()) return H5Tcopy(types.at(which));
    if (which == types.size()) return string_type();
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1 + input_.below(20));
    return type;
  }
  hid_t any_space(bool chunked) {
    const int rank = static_cast<int>(input_.below(4));
    if (rank == 0) return H5Screate(input_.byte() % 8 == 0 ? H5S_NULL : H5S_SCALAR);
    std::array<hsize_t, 3> dims{};
    for (hsize_t& d : dims) d = input_.byte() % 16 == 0 && chunked ? input_.word() >> 20 : input_.below(8);
    return H5Screate_simple(rank, dims.data(), nullptr);
  }

  void new_dataset(const std::string& path) {
    const bool chunked = input_.byte() % 2 == 0;
    const hid_t type = any_type(), space = any_space(chunked), creation = H5Pcreate(H5P_DATASET_CREATE);
    const int rank = H5Sget_simple_extent_ndims(space);
    if (chunked && rank > 0) {
      const std::array<hsize_t, 3> chunk{4, 4, 4};
      H5Pset_chunk(creation, rank, chunk.data());
      H5Pset_deflate(creation, 1);
    }
    const hid_t set = H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    if (set >= 0) H5Dclose(set);
    H5Pclose(creation);
    H5Sclose(space);
    H5Tclose(type);
    change_value(path);
  }

  /// Some elements of a small dataset get other values; its type stays.
  void change_value(const std::string& path) {
    const hid_t set = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
    if (set < 0) return;
    const hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    if (n > 0 && n < 10000) {
      if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0) {
        change_strings(set, static_cast<std::size_t>(n));
      } else if (H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT) {
        change_numbers(set, static_cast<std::size_t>(n), H5Tget_class(type) == H5T_FLOAT);
      }
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
  }
  void change_strings(hid_t set, std::size_t n) {
    const hid_t type = string_type(), space = H5Dget_space(set);
    std::vector<char*> values(n, nullptr);
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0) {
      std::vector<std::string> kept;
      for (const char* value : values) kept.emplace_back(value == nullptr ? "" : value);
      H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
      kept[input_.below(n)] = input_.text();
      std::vector<const char*> pointers;
      for (const std::string& value : kept) pointers.push_back(value.c_str());
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data());
    }
    H5Sclose(space);
    H5Tclose(type);
  }
  void change_numbers(hid_t set, std::size_t n, bool real) {
    std::vector<std::uint64_t> values(n);
    const hid_t type = real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_UINT64;
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) return;
    for (std::size_t k = input_.byte() % 4 == 0 ? n : 1; k > 0; --k) values[input_.below(n)] = input_.word();
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  }

  void edit_attribute(const std::string& path) {
    const hid_t object = H5Oopen(file_, path.c_str(), H5P_DEFAULT);
    if (object < 0) return;
    std::array<char, 200> name{};
    const hsize_t count = static_cast<hsize_t>(std::max(0, H5Aget_num_attrs(object)));
    const hsize_t at = input_.below(count);
    const ssize_t length = H5Aget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, at, name.data(),
                                              name.size(), H5P_DEFAULT);
    H5Oclose(object);
    if (count == 0 || length <= 0) return;
    set_attribute(path, name.data());
  }
  void set_attribute(const std::string& path, const std::string& name) {
    const hid_t object = H5Oopen(file_, path.c_str(), H5P_DEFAULT);
    if (object < 0) return;
    if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
    if (input_.byte() % 4 != 0) {
      const hid_t type = any_type(), space = any_space(false);
      const hid_t attribute = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
      if (attribute >= 0) {
        fill_attribute(attribute, type,
                       static_cast<std::size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space))));
        H5Aclose(attribute);
      }
      H5Sclose(space);
      H5Tclose(type);
    }
    H5Oclose(object);
  }
  void fill_attribute(hid_t attribute, hid_t type, std::size_t n) {
    if (H5Tget_class(type) == H5T_STRING) {
      if (H5Tis_variable_str(type) <= 0) return;
      const std::string text = input_.text();
      const std::vector<const char*> pointers(n, text.c_str());
      if (n > 0) H5Awrite(attribute, type, pointers.data());
      return;
    }
    const std::vector<std::uint64_t> values(n, input_.word());
    if (n > 0) H5Awrite(attribute, H5T_NATIVE_UINT64, values.data());
  }

  void link(const std::string& from, const std::string& to) {
    const std::string name = to + "/" + (input_.byte() % 2 == 0 ? "x" : input_.text());
    switch (input_.byte() % 5) {
      case 0: H5Lcreate_hard(file_, from.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT); break;
      case 1: H5Lcreate_soft(from.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT); break;
      case 2: H5Lcreate_external("/etc/passwd", "/", file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT); break;
      case 3:
        H5Ldelete(file_, to.c_str(), H5P_DEFAULT);
        H5Lcreate_hard(file_, from.c_str(), file_, to.c_str(), H5P_DEFAULT, H5P_DEFAULT);
        break;
      default: H5Lmove(file_, from.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    }
  }

  /// A value somewhere in a JSON text becomes another one, or the whole text does.
  void change_text(const std::string& path) {
    const hid_t set = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
    if (set < 0) return;
    const hid_t type = string_type(), space = H5Dget_space(set);
    char* stored = nullptr;
    if (H5Sget_simple_extent_npoints(space) == 1 &&
        H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &stored) >= 0 && stored != nullptr) {
      Json json = Json::parse(stored, nullptr, false);
      std::free(stored);
      Json* at = &json;
      for (unsigned depth = input_.byte() % 4; depth > 0 && at->is_structured() && !at->empty(); --depth)
        at = &*std::next(at->begin(), static_cast<std::ptrdiff_t>(input_.below(at->size())));
      *at = any_json();
      const std::string text = input_.byte() % 8 == 0 ? input_.text() : results::dump(json);
      const char* pointer = text.c_str();
      H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &pointer);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
  }
  Json any_json() {
    switch (input_.byte() % 6) {
      case 0: return nullptr;
      case 1: return input_.word();
      case 2: return -static_cast<double>(input_.word());
      case 3: return input_.text();
      case 4: return Json::array({input_.text(), 1});
      default: return Json::object({{input_.text(), input_.word()}});
    }
  }

  hid_t file_;
  Input& input_;
  const std::vector<std::string>& objects_;
};

}  // namespace

void edits(const std::string& input) {
  const hid_t file = open_image(good_file().image);
  if (file < 0) broken("the good file does not open");
  Input in(input);
  Editor editor(file, in);
  constexpr int most = 40;
  for (int i = 0; i < most && !in.empty(); ++i) editor.edit();
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  std::string image(static_cast<std::size_t>(std::max<ssize_t>(size, 0)), '\0');
  if (size > 0) H5Fget_file_image(file, image.data(), image.size());
  H5Fclose(file);
  results::seal(image);
  const std::string path = scratch_directory() + "/edits.h5";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << image;
  clean([&] { use_results(path); });
  clean([&] { results::check_file(path); });
}

}  // namespace assay::fuzz
