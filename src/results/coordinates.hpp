// SPDX-License-Identifier: Apache-2.0
// Coordinates that cases have in common. Private to src/results.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "results/h5.hpp"
#include "results/schema_model.hpp"

namespace assay::results {

/// Writes the datasets that the schema fixes for the cases of one file. A dataset that equals a recent one of
/// the same name and scales is not written again: the case gets a hard link to it. In a file of many small
/// cases datasets are most of the size and of the time. All members throw Error(hdf5) if HDF5 cannot write.
class SharedCoordinates {
 public:
  using ScalePtr = std::shared_ptr<h5::Scale>;

  /// The scale `name` in `group`.
  ScalePtr scale(hid_t group, const std::string& name, std::size_t length, const std::int32_t* values);
  /// Any other dataset that the schema fixes, on `scales`.
  void dataset(hid_t group, const Field& field, const std::vector<std::size_t>& shape, const void* values,
               const std::vector<ScalePtr>& scales);
  /// After the last case: gives every scale the list of the datasets that use it.
  void finish();

 private:
  struct Written {
    std::string bytes;
    std::vector<std::size_t> shape;
    std::vector<ScalePtr> scales;  ///< those it lies on, or the one it is
    h5::Id set;                    ///< of what is no scale
    bool equals(const Written& other) const {
      return !bytes.empty() && bytes == other.bytes && shape == other.shape;
    }
  };
  using Recent = std::deque<Written>;  ///< latest first

  static void push(Recent& recent, Written&& written);

  std::map<std::string, Recent> recent_;
};

}  // namespace assay::results
