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

/// Writes the fixed datasets of the cases of one file. One that equals one of the latest of its name, on the
/// same scales, is not written again: the case gets a hard link to it. Datasets are most of the work and of
/// the size of a file of many small cases.
class SharedCoordinates {
 public:
  using ScalePtr = std::shared_ptr<h5::Scale>;

  /// The scale `name` in `group`.
  ScalePtr scale(hid_t group, const std::string& name, std::size_t length, const std::int32_t* values);
  /// Any other dataset that the schema fixes, on `scales`.
  void dataset(hid_t group, const Field& field, const std::vector<std::size_t>& shape, const void* values,
               const std::vector<ScalePtr>& scales);
  /// Every scale gets the list of its uses, which is known when no case can use it any more.
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
