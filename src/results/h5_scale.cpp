// SPDX-License-Identifier: Apache-2.0
// Dimension scales as HDF5's specification has them: attributes CLASS, NAME and REFERENCE_LIST of the scale,
// DIMENSION_LIST of what uses it.
#include <cstring>

#include "results/h5.hpp"

namespace assay::results::h5 {
namespace {

void put_array(hid_t object, const char* name, hid_t type, hsize_t length, const void* values) {
  const Id space(check(H5Screate_simple(1, &length, nullptr), "data space"));
  const Id attribute(check(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), name));
  check(H5Awrite(attribute, type, values), name);
}

/// Of the length of its text, which is how H5DS writes it.
void put_fixed(hid_t object, const char* name, const std::string& text) {
  const Id type(check(H5Tcopy(H5T_C_S1), name)), space(check(H5Screate(H5S_SCALAR), name));
  check(H5Tset_size(type, text.size() + 1), name);
  const Id attribute(check(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), name));
  check(H5Awrite(attribute, type, text.c_str()), name);
}

hobj_ref_t reference_to(hid_t object) {
  hobj_ref_t reference{};
  check(H5Rcreate(&reference, object, ".", H5R_OBJECT, -1), "reference");
  return reference;
}

Id use_type() {
  Id type(check(H5Tcreate(H5T_COMPOUND, sizeof(Scale::Use)), "type of a scale"));
  check(H5Tinsert(type, "dataset", HOFFSET(Scale::Use, dataset), H5T_STD_REF_OBJ), "type of a scale");
  check(H5Tinsert(type, "dimension", HOFFSET(Scale::Use, dimension), H5T_NATIVE_INT), "type of a scale");
  return type;
}

}  // namespace

Scale::Scale(Id dataset, const std::string& name)
    : dataset_(std::move(dataset)), reference_(reference_to(dataset_)) {
  put_fixed(dataset_, "CLASS", "DIMENSION_SCALE");
  put_fixed(dataset_, "NAME", name);
}

void Scale::attach(hid_t dataset, const std::vector<std::shared_ptr<Scale>>& dims) {
  static const Id type(check(H5Tvlen_create(H5T_STD_REF_OBJ), "type of a scale"));
  const hobj_ref_t reference = reference_to(dataset);
  std::vector<hvl_t> list;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    list.push_back({1, &dims[d]->reference_});
    dims[d]->uses_.push_back({reference, static_cast<int>(d)});
  }
  put_array(dataset, "DIMENSION_LIST", type, list.size(), list.data());
}

void Scale::finish() {
  static const Id type = use_type();
  if (!uses_.empty()) put_array(dataset_, "REFERENCE_LIST", type, uses_.size(), uses_.data());
}

}  // namespace assay::results::h5
