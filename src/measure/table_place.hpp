// SPDX-License-Identifier: Apache-2.0
// Where a size lies between the rows of a table that is given for some sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace assay {

struct TablePlace {
  double x = 0;         ///< the size, not beyond the first and last rows
  std::size_t row = 0;  ///< it lies between this row and the next
  double linear = 0,
         logarithmic = 0;  ///< how far from this row to the next, by size and by its logarithm, 0 to 1
};

/// `rows`: two or more, with an ascending member `n` above 0.
template <typename Rows>
TablePlace place_in(const Rows& rows, double n) {
  TablePlace place;
  place.x = std::clamp(n, rows.front().n, rows.back().n);
  while (place.row + 2 < rows.size() && rows[place.row + 1].n < place.x) ++place.row;
  const double low = rows[place.row].n, high = rows[place.row + 1].n;
  place.linear = (place.x - low) / (high - low);
  place.logarithmic = std::log(place.x / low) / std::log(high / low);
  return place;
}

}  // namespace assay
