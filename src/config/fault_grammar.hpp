// SPDX-License-Identifier: Apache-2.0
// How faults are written, kind[:key=value{,key=value}], with lists 1+4 and ranges 2-5. `run --inject` and
// `simulate --fault` declare the kinds and keys of each; all of the reading is here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay {

/// A set of whole numbers written as 1+4 or 2-5+9; empty = all.
class NumberSet {
 public:
  static NumberSet parse(const std::string& key,
                         const std::string& text);  ///< Error(usage) names key and text
  bool contains(std::int64_t n) const noexcept;
  bool everything() const noexcept { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// Nodes by index, range of indices, or glob on the name, joined by +; empty = all.
class NodeSet {
 public:
  static NodeSet parse(const std::string& key, const std::string& text);
  bool contains(std::int64_t index, const std::string& name) const;

 private:
  std::vector<std::string> globs_;
  std::vector<NumberSet> indices_;
};

/// What faults of a run and of a synthetic cluster have in common.
struct CommonFault {
  std::string text;  ///< as typed
  NodeSet nodes;
  NumberSet devices;  ///< index within the node
  std::string suite = "*", case_glob = "*", metric = "*";
  std::int64_t pair_source = -1, pair_destination = -1;  ///< ranks
  std::string target;                                    ///< where a value is changed
  double factor = 0.5;                                   ///< rate multiplier in (0, 1)
  double duty = 1.0;                                     ///< fraction of repetitions or samples that are hit

  /// A glob with a slash is one on suite/case.
  bool hits_case(const std::string& suite_name, const std::string& case_name) const;
};

namespace fault_grammar {

/// Reads the value of a key; throws Error(usage) "key=value: what is wrong".
using Reader = std::function<void(const std::string& key, const std::string& value)>;
using Readers = std::map<std::string, Reader>;

[[noreturn]] void bad(const std::string& key, const std::string& value, const std::string& wanted);

// Readers that store into an object which outlives them.
Reader read_text(std::string& to);
Reader read_one_of(std::string& to, const std::vector<std::string>& allowed);
Reader read_real(double& to);
Reader read_fraction(double& to, bool one_allowed);  ///< above 0 and below 1, or at most 1 with `one_allowed`
Reader read_percent(double& to);                     ///< 5 is the factor 0.95
Reader read_seconds(double& to);                     ///< with an optional unit, at most a day
Reader read_bytes(std::uint64_t& to);                ///< with an optional unit
Reader read_whole(std::optional<std::uint64_t>& to, std::uint64_t most = ~std::uint64_t{0},
                  const char* what = "");
Reader read_numbers(NumberSet& to);

/// node, device, suite, case, metric, pair, factor and duty of any fault.
Readers common_readers(CommonFault& fault);

struct KindRow {
  int kind;  ///< a value of the enumeration of the declaring module
  const char* name;
  std::vector<std::string> keys;
  std::vector<std::string> required;  ///< "a|b": one of them, or both
};

struct Parsed {
  int kind;
  std::vector<std::string> keys;  ///< that were given
  bool has(const std::string& key) const;
};

/// Gives each value in `text` to the reader of its key. Throws Error(usage) with one line naming the part
/// that is wrong: a kind or key that is not known, a key without a value or given twice, or a missing one.
Parsed parse(const std::string& text, const std::vector<KindRow>& kinds, const Readers& readers);

}  // namespace fault_grammar
}  // namespace assay
