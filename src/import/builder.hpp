// SPDX-License-Identifier: Apache-2.0
// Collects imported samples in any order and makes results of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/text_file.hpp"
#include "results/model.hpp"

namespace assay::imports {

/// One value of a sample.
struct Value {
  std::string name, unit;  ///< unit of the closed list; the value is in it
  results::Better better = results::Better::none;
  results::Role role = results::Role::metric;
  double value = 0;  ///< results::not_taken where it is not known
};

/// What a sample is about: a node, a device of it, or the way from there to a second node or device.
struct Subject {
  std::string node, device;            ///< device empty: the node itself
  std::string peer_node, peer_device;  ///< peer_node empty: no link
  bool link() const noexcept { return !peer_node.empty(); }
};

struct Sample {
  std::string suite, name;  ///< of the case
  std::string stage;
  std::optional<std::int64_t> bytes;  ///< of a message
  Subject subject;
  std::optional<std::int64_t> index;  ///< of the sample; the next one when not given
  std::int32_t block = 0;
  bool common_blocks = false;  ///< a block is of one time, and all parts may have it
  double t = 0;
  bool dated = false;         ///< t counts from 1970
  std::int64_t retest = 0;    ///< which measurement made to confirm or clear the first one; 0: the first one
  std::vector<Value> values;  ///< in the same order for all samples of a case
  TextPosition place;
};

class Builder {
 public:
  /// `tool` names the other tool, for /environment and the run's identity.
  explicit Builder(std::string tool);

  /// Throws Error(data) naming the place when the sample does not fit those before.
  void add(const Sample& sample);
  /// An attribute of an entity, as text. Throws Error(data) when it had another value.
  void attribute(const Subject& subject, const std::string& name, const std::string& value,
                 const TextPosition& place);
  /// A wrong result of a whole group: no member can be named.
  void fail_case(const std::string& suite, const std::string& name, const std::string& reason);
  void set_stage(const std::string& suite, const std::string& name, const std::string& stage);

  /// What shows that an input does not hold all that was measured: the verdict is INCONCLUSIVE.
  void incomplete(const std::string& text) { incomplete_.push_back(text); }
  /// A row that was there before, word for word.
  void count_duplicate() noexcept { ++duplicates_; }

  /// A row without a value. A part that has no other of that case makes the import incomplete.
  void count_missing(const Sample& sample);
  /// A file or a test without any value, where `why` completes "FILE ...". Without any value of another file
  /// finish() throws Error(data). With `gap`, nothing else tells what was not measured: the import is
  /// incomplete.
  void add_empty(const TextPosition& place, const std::string& why, bool gap = true);
  /// A part that may have no sample at all.
  void add_part(const Subject& subject, const TextPosition& place) { subject_row(subject, place); }

  /// The results, complete but for the verdict. Throws Error(data) where there is no sample.
  results::Results finish(const std::vector<std::string>& files);

  /// A name as the results file can hold it with suffixes: [a-z0-9_-], at most 68 characters; longer ones end
  /// in a hash.
  static std::string case_name(const std::string& text);
  /// The same; throws Error(data) when another text has that name.
  std::string case_name(const std::string& text, const TextPosition& place);

 private:
  struct Cell {
    std::int32_t sample = 0, block = 0;
    double t = 0;
  };
  struct Row {
    std::int32_t entity = -1, source = -1, destination = -1;
    std::vector<Cell> cells;
    std::vector<std::vector<double>> values;  ///< [metric][cell]
  };
  struct Case {
    std::string suite, name, stage, kind, failure;
    std::int64_t retest = 0;
    TextPosition place;  ///< of its first sample
    std::optional<std::int64_t> bytes;
    bool common_blocks = false;
    std::vector<Value> metrics;  ///< their values unused
    std::vector<Row> rows;
    std::unordered_map<std::int32_t, std::size_t> row_of;  ///< by entity
  };

  std::int32_t node_row(const std::string& name, const TextPosition& place);
  std::int32_t end_row(const std::string& node, const std::string& device, const TextPosition& place);
  std::int32_t subject_row(const Subject& subject, const TextPosition& place);
  static std::string key_of(const Sample& sample);
  Case& case_for(const Sample& sample, const std::string& kind);
  /// The case, in parts (NAME, NAME.p2, ...) where some entities have many more samples than others, or other
  /// blocks.
  static std::vector<results::CaseData> data_of(const Case& c);
  static std::vector<std::vector<const Row*>> alike_in_blocks(const Case& c);
  static void add_parts(const Case& c, std::vector<const Row*> rows, std::vector<results::CaseData>& parts);
  /// Its cells by time and sample number, whatever the order of the lines was.
  static std::vector<std::size_t> order_of(const Row& row);
  static results::CaseData part_of(const Case& c, const std::vector<const Row*>& rows, std::size_t begin,
                                   std::size_t width, std::size_t number);
  void set_times(results::Results& r);
  /// Counts and gaps, as events.
  void add_events(results::Results& r, std::size_t files) const;
  /// What tells of parts of which a case has rows without a value and no other.
  void add_never_measured(results::Results& r) const;
  std::map<std::string, results::InventoryTable> inventory() const;

  std::string tool_;
  std::vector<results::Entity> entities_;
  std::unordered_map<std::string, std::int32_t> known_;  ///< by kind and name
  std::vector<Case> cases_;
  std::unordered_map<std::string, std::size_t> case_of_;
  std::unordered_map<std::string, std::string> named_;  ///< what the text of a name was
  std::unordered_map<std::int32_t, std::map<std::string, std::string>> attributes_;
  std::vector<std::string> incomplete_;
  struct Empty {
    TextPosition place;
    std::string why;
    bool gap;
  };
  std::vector<Empty> empty_;
  std::size_t samples_ = 0, duplicates_ = 0, missing_ = 0;
  std::set<std::pair<std::string, std::int32_t>> without_value_;  ///< case and entity of rows without one
  std::size_t dated_ = 0;                                         ///< samples with a date
};

}  // namespace assay::imports
