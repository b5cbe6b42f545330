// SPDX-License-Identifier: Apache-2.0
// Parts of one kind against the majority of them. Private to the judges of inventory.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "verdict/judgement.hpp"

namespace assay::verdict {

/// The judged table, and the words for its rows.
struct Majority {
  std::string table;  ///< below /inventory
  std::string many;   ///< "nodes"
  /// Columns in which a smaller number means a missing part instead of another setting.
  std::function<bool(const std::string& column)> is_amount;
};

/// A column of texts or numbers: those that differ from the majority, from one another where there is none,
/// or a second population. `rows` are of /entities; what is not told (NaN, an
/// empty text) is not compared.
void judge_column(Judgement& j, const Majority& of, const std::string& column,
                  const std::vector<std::int32_t>& rows, const std::vector<double>& values);
void judge_column(Judgement& j, const Majority& of, const std::string& column,
                  const std::vector<std::int32_t>& rows, const std::vector<std::string>& values);

/// Columns that differ between healthy parts by nature.
bool is_identity(const std::string& column);

/// Whether the part's node is a virtual machine, whose PCIe tree is virtual.
bool is_virtual_node(const Judgement& j, std::int32_t node);

std::string number_text(double value);

/// GPUs against one another, and their links against what they can do.
void judge_gpus(Judgement& j);

}  // namespace assay::verdict
