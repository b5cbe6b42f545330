// SPDX-License-Identifier: Apache-2.0
// Output of nccl-tests, read from text or JSON. Private to src/import.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "import/builder.hpp"

namespace assay::imports::nccl {

/// A rank's device, from "Using devices".
struct RankDevice {
  std::string node, device, model;
  std::int64_t rank = -1, group = 0;  ///< the communicator that it is in, where ranks are split
};

/// One half of a row: out of place, or in place.
struct Half {
  bool in_place = false;
  double time_s = 0, algbw = 0, busbw = 0;  ///< seconds, B/s
  std::optional<double> wrong;              ///< elements; nothing when they were not counted
  bool checked = false;                     ///< results were compared, with a count or without
  std::vector<double> times_s;              ///< of the single iterations, where they were reported
};

/// One row of the output: a message size with its measurements.
struct Line {
  std::int64_t bytes = 0;  ///< of the message
  std::string type, redop;
  std::vector<Half> halves;
  TextPosition place;
};

/// One start of a benchmark.
struct Run {
  std::string operation;  ///< all_reduce, ...; empty when unknown
  bool graph = false;     ///< launched as a captured graph
  bool cpu_time = false;  ///< until the calls returned
  std::vector<RankDevice> devices;
  std::vector<Line> lines;
  std::optional<double> out_of_bounds;  ///< of all lines, as the end of the output says
  bool cut = false;                     ///< a JSON that ends in the middle: nothing of it is known
  bool ended = true;                    ///< false: the last lines of a complete run are missing
  TextPosition place;                   ///< where it begins, of a text
};

/// Both throw Error(data) naming `file`, and the line of a text, if it is not output of nccl-tests.
Run read_json(const std::string& text, const std::string& file);
/// The runs of a text, one after the other: each begins with a header.
std::vector<Run> read_text(const std::string& text, const std::string& file);

/// all_reduce of "/opt/build/all_reduce_perf" or "x/all_reduce_perf.txt"; empty when no collective is in it.
std::string operation_in(const std::string& text);

}  // namespace assay::imports::nccl
