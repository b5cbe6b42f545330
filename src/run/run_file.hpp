// SPDX-License-Identifier: Apache-2.0
// The results file of a running job: opened, continued or carried over, and written case by case.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "config/config.hpp"
#include "results/writer.hpp"
#include "suite/case.hpp"
#include "suite/record.hpp"
#include "topology/entities.hpp"

namespace assay {

/// Messages of node leaders beside their own record.
struct NodeNews {
  std::vector<std::string> counters, telemetry;  ///< JSON text of a node each: values take ten times as much
};

/// The results file of a segment, counted from 1: --out, or of a run in several segments NAME-seg01.h5,
/// NAME-seg02.h5 ...
std::filesystem::path file_of_segment(const Config& config, int segment);

/// Throws Error(usage) where one of these files, from segment `first` on, cannot be made, such as one that is
/// there without --force.
void check_new_files(const Config& config, int first = 1);

class RunFile {
 public:
  /// A new file, or the one that --resume names. `entities` outlives this object and adopts the rows of an
  /// earlier launch.
  void open(const Config& config, EntityTable& entities, results::Writer::Start start, int segment);
  bool is_open() const noexcept { return writer_ != nullptr; }
  results::Writer& writer() noexcept { return *writer_; }
  void close() noexcept { writer_.reset(); }
  void discard() noexcept;

  /// Events before have the time 0. `identity` of device and transport is part of every case_key.
  void all_ready(double run_start_s, const std::string& identity);
  void begin_case();
  /// `all`: no rank is missing. Then ranks that did not finish a case inside nodes leave it to the others.
  void write(const Case& c, std::vector<CaseRecord> records, const NodeNews& news, bool all = true);
  /// A case without measurements.
  void write_state(const Case& c, results::CaseState state, const std::string& reason);
  /// `finding`: see results::EventRow.
  void event(int entity, const std::string& kind, const std::string& text, const std::string& finding = {},
             const std::string& case_path = {});

 private:
  std::unique_ptr<results::Writer> writer_;
  EntityTable* entities_ = nullptr;
  double run_start_s_ = 0;
  std::string identity_, case_started_;
};

}  // namespace assay
