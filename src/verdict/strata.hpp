// SPDX-License-Identifier: Apache-2.0
// Attributes that must be equal for peers, and attributes that may explain a difference.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// Peers beyond the case_key: processor or device model and cores; NICs by driver and rate; NUMA domains by
/// size; links by both ends and by whether they cross nodes.
class Strata {
 public:
  explicit Strata(const Judgement& j);
  std::string of(const SeriesRow& row, const std::string& kind) const;
  /// Equal for rows of equal stratum, in O(1): the first row of the stratum. Not for links.
  std::int32_t representative(std::int32_t row) const noexcept {
    return j_.entities.valid(row) ? representative_[static_cast<std::size_t>(row)] : -1;
  }

 private:
  void note(const char* kind, std::initializer_list<const char*> texts,
            std::initializer_list<const char*> numbers);
  std::string label(std::int32_t row) const;
  std::string model(std::int32_t row) const;
  const Judgement& j_;
  std::unordered_map<std::int32_t, std::string> labels_;
  std::vector<std::int32_t> representative_;
};

/// One recorded property of the entities of a population, value by value: ids index `values`; -1 where not
/// recorded.
struct Attribute {
  std::string name;
  std::vector<std::string> values;
  std::vector<std::int32_t> of;  ///< by position in the population
};

/// A place is where parts fail together (cooling, power, a cable): a hint, no excuse. A slot is none: every
/// node has it.
bool is_place(const std::string& attribute);

/// The index of each entity of this kind among those of its node; -1 for others and outside of nodes.
std::vector<std::int32_t> slots_in_nodes(const EntityIndex& entities, const std::string& kind);

/// Everything recorded of these rows of /entities that takes two values or more and is not a name of its own
/// for everyone: columns of their own table and of their node's, slot (index among the devices of the node),
/// rack, switch.
std::vector<Attribute> attributes_of(const Judgement& j, const std::vector<std::int32_t>& rows);

/// The same with a cache: most metrics of a run have the same entities.
class AttributeCache {
 public:
  const std::vector<Attribute>& of(const Judgement& j, std::vector<std::int32_t> rows) {
    const auto [it, fresh] = known_.try_emplace(std::move(rows));
    if (fresh) it->second = attributes_of(j, it->first);
    return it->second;
  }

 private:
  std::map<std::vector<std::int32_t>, std::vector<Attribute>> known_;
};

}  // namespace assay::verdict
