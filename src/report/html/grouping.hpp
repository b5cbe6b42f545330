// SPDX-License-Identifier: Apache-2.0
// Series that belong into one picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::report {

/// Names in the order of the numbers in them: rack2 before rack10.
struct ByNumber {
  bool operator()(const std::string& a, const std::string& b) const noexcept {
    return strverscmp(a.c_str(), b.c_str()) < 0;
  }
};

/// Series that differ by the size in their case name alone, bytes or columns, in the order of that size.
struct Sweep {
  std::string title, unit;  ///< "allreduce/allreduce-world-*-mpi:busbw"
  bool higher_is_better = true;
  std::vector<double> sizes;
  std::vector<const verdict::Series*> series;
};
/// Those of three sizes or more.
std::vector<Sweep> sweeps_of(const verdict::Judgement& j);

/// A pair that was measured, by the places of its ends in Matrix::nodes, and the deficit of its slowest link.
struct MeasuredPair {
  std::size_t from = 0, to = 0;
  double deficit = 0;
};

/// Links as a square, of which most pairs of a large cluster are not measured.
struct Grid {
  std::vector<MeasuredPair> pairs;
  double median = 0;  ///< of the links
  std::size_t links = 0;
};

/// The links of one rail: between NICs, or devices, of one name.
struct RailGrid {
  std::string rail;  ///< "mlx5_0"; across_rails where the two ends have other names
  Grid grid;
};
inline constexpr const char* across_rails = "across rails";

/// What a node sends and receives on one rail.
struct EndRates {
  std::int32_t node = -1;
  std::string rail;
  double sends = 0, receives = 0;  ///< median deficit of its links against all links; NaN: none
  std::size_t links = 0;
};

struct SlowLink {
  std::int32_t from = -1, to = -1;  ///< rows of /entities: NICs, devices or nodes
  double value = 0, deficit = 0;
};

/// A series of links as a square of nodes, whole and by rail.
struct Matrix {
  const verdict::Series* series = nullptr;
  std::vector<std::int32_t>
      nodes;  ///< rows of /entities, by switch and then by name; of one node: its devices
  Grid all;
  std::vector<RailGrid> rails;    ///< by name; empty when there is one only
  bool inside = false;            ///< between parts of one node
  std::vector<EndRates> ends;     ///< every node and rail, the slowest direction first
  std::vector<SlowLink> slowest;  ///< some, the slowest first
};
/// Those that the page shows: the first `matrices_shown` of the run.
struct Matrices {
  std::vector<Matrix> shown;
  std::size_t more = 0;
};
inline constexpr std::size_t matrices_shown = 12;
Matrices matrices_of(const verdict::Judgement& j);

}  // namespace assay::report
