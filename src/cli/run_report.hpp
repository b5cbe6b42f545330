// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/exit_code.hpp"
#include "config/config.hpp"
#include "run/session.hpp"
#include "verdict/join.hpp"

namespace assay::cli {

/// What `run` says of its file, or of those of a soak one after the other.
class RunReports {
 public:
  explicit RunReports(const Config& config) : config_(config) {}

  /// Prints and writes all that can be, then throws for the first that could not. Of a soak, report
  /// files cover all segments so far, but the page shows this one; the summary adds the joint verdict after
  /// the last. Returns the
  /// exit code of all that was told, which for the last segment is that of all of them together.
  int tell(const RunReport& run);

 private:
  const Config& config_;
  verdict::Join segments_;
  int code_ = 0;  ///< of the segments that were told
};

/// The exit code of a run whose ranks leave it to their files, which is `of_files`: no file shows what parts
/// lose from one segment to the next. Throws Error where one cannot be read.
ExitCode code_with_drift(const Config& config, ExitCode of_files);

}  // namespace assay::cli
