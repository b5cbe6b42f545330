// SPDX-License-Identifier: Apache-2.0
// What the checks of a results file have in common. Private to src/results.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "results/file_io.hpp"
#include "results/schema_model.hpp"

namespace assay::results {

/// A file of a million wrong things is wrong: a longer list is not useful, and finding them all takes
/// minutes.
struct TooManyProblems {};
/// Throws TooManyProblems at the thousandth.
void add_problem(std::vector<std::string>& problems, const std::string& text);

/// Collects problems, one line each, and goes on after every one.
class Checker {
 public:
  Checker(hid_t file, const h5::Limits& limits, std::size_t entities, std::vector<std::string>& problems)
      : file_(file), limits_(limits), schema_(Schema::get()), entities_(entities), problems_(problems) {}

 protected:
  void problem(const std::string& text);
  /// An exception inside `act` is one problem of `path`.
  void guard(const std::string& path, const std::function<void()>& act);

  /// Calls `check`, unless the same object has passed it as `what` before: cases share datasets, and a scale
  /// of 20,000 uses is long.
  void once(hid_t object, const std::string& what, const std::function<void()>& check);

  void attributes(hid_t object, const std::string& path, const std::vector<Field>& fields);
  void attribute(hid_t object, const std::string& path, const Field& field);
  /// `expected` empty: any unit of the closed list.
  void unit(hid_t set, const std::string& name, const std::string& expected);

  bool type_is(hid_t set, const std::string& name, h5::Type type);
  std::vector<std::int32_t> integers(hid_t set, const std::string& name);
  /// Names the first text that is not UTF-8.
  void utf8(const std::vector<std::string>& texts, const std::string& name);
  void column_values(hid_t set, const std::string& name, const Field& field);
  void references(hid_t set, const std::string& name, std::int32_t least);

  /// `path`/`name` is there and a dimension scale.
  void scale(hid_t group, const std::string& path, const std::string& name);
  /// Every dimension has exactly one scale, of this name.
  void attached(hid_t set, const std::string& name, const std::vector<std::string>& dims);

  hid_t file_;
  h5::Limits limits_;
  const Schema& schema_;
  std::size_t entities_;

 private:
  std::vector<std::string>& problems_;
  std::set<std::pair<haddr_t, std::string>> passed_;
  std::map<haddr_t, std::string> scale_names_;
};

/// Adds the problems of everything below /cases.
void check_cases(const OpenFile& file, std::size_t entities, std::vector<std::string>& problems);

}  // namespace assay::results
