// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"

namespace assay::report {

/// Counters that changed, events and throttle flags by the name of their part. Refers to the results.
class Seen {
 public:
  struct Rows {
    std::vector<const results::CounterRow*> counters;
    std::vector<const results::EventRow*> events;
    std::vector<const results::FlagRow*> flags;
  };

  explicit Seen(const results::Results& results);
  /// Of a part, of what is below it and of what it is a part of; of a link of its two ends, their nodes and
  /// the NICs that it may take. In the order of the results.
  Rows near(const std::string& name) const;

 private:
  struct Part {
    bool nic = false;
    Rows rows;
  };
  void add_above(const std::string& name, Rows& out) const;
  void add_below(const std::string& name, bool nics_only, Rows& out) const;
  void add_end(const std::string& name, Rows& out) const;

  std::map<std::string, Part> parts_;  ///< NICs, and those of which something was seen
};

/// Flags that were set, part by part, about `most` of them: parts with many are thinned, so that none with a
/// flag is left out where there are no more parts than that.
std::vector<const results::FlagRow*> thinned(const std::vector<results::FlagRow>& flags, std::size_t most);

}  // namespace assay::report
