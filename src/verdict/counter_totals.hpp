// SPDX-License-Identifier: Apache-2.0
// The counters of a run, each over all its cases.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "results/counter_class.hpp"
#include "results/model.hpp"

namespace assay::verdict {

struct Judgement;

struct Total {
  double delta = 0;                               ///< sum of what it rose by in the cases
  double before = results::not_taken, after = 0;  ///< first and last reading
  double worst = 0;                               ///< most that it rose by in one case
  std::string first_case, worst_case;             ///< first: in which it rose, or could not be read any more
  double since_reset = 0;                         ///< what it read after cases in which it decreased
  std::int64_t cases = 0;                         ///< in which it rose
  bool unreadable = false, reset = false, readable = false;
};

/// By entity and counter; without those that always stood still, and without traffic that could be read.
using Totals = std::map<std::pair<std::int32_t, std::string>, Total>;
Totals total_by_counter(const results::Results& results);

/// Whether it is one of the driver of GPUs: nvml_..., xid_79.
bool is_gpu_counter(const std::string& counter);
/// Whether it counts bytes, packets or drops, whose rise tells of no fault.
bool is_traffic(const std::string& counter);
using results::all_thermal, results::hardware_thermal, results::is_throttling;

/// Interfaces that come and go with containers and guests: NICs that the inventory does not list, of nodes of
/// which it lists others.
class PassingInterfaces {
 public:
  explicit PassingInterfaces(const Judgement& j);
  bool contains(std::int32_t row) const;

 private:
  const Judgement& j_;
  std::set<std::int32_t> listed_, nodes_;
};

/// Facts from the counters of GPUs.
void judge_gpu_counters(Judgement& j, const Totals& totals);

}  // namespace assay::verdict
