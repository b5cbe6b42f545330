// SPDX-License-Identifier: Apache-2.0
// Several results files judged together: the segments of a soak, or the parts of a run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::verdict {

/// Takes in the files one by one, each with its own verdict, and joins them:
///   state      the worst, by FAIL > INCONCLUSIVE > WARN > PASS, and its exit code
///   reasons    each with the file it comes from
///   findings   the same one (level, name, kind, suite, metric) of several files once, with the worst
///   deficit;
///              text and evidence say where and how often
///   entities   the worst state of each, by kind and id
///   counts     summed
class Join {
 public:
  void add(const std::string& file, const results::Results& results, const results::VerdictData& verdict);

  /// `entities` and `info` only: what reports name. Rows of `verdict().entities` refer to it.
  const results::Results& results() const noexcept { return results_; }
  /// Throws Error(internal) when nothing was added.
  results::VerdictData verdict(bool strict) const;

 private:
  struct Merged {
    results::Finding finding;
    std::vector<std::string> files;
  };
  std::int32_t row_of(const results::Entity& entity);
  void take_entities(const results::Results& results, const results::VerdictData& verdict);
  void take_findings(const std::string& file, const std::vector<results::Finding>& findings);

  results::Results results_;
  results::VerdictData verdict_;
  std::vector<std::string> files_;
  std::vector<Merged> findings_;
  std::map<std::string, std::int32_t> rows_;  ///< kind and id -> row
  std::map<std::int32_t, results::EntityState> states_;
  std::map<std::string, std::size_t> known_findings_;
};

}  // namespace assay::verdict
