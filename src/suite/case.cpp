// SPDX-License-Identifier: Apache-2.0
#include "suite/case.hpp"

#include "base/units.hpp"
#include "results/case_name.hpp"
#include "results/schema.hpp"

namespace assay {

const char* to_string(Stage stage) noexcept {
  static const std::vector<std::string> names = results::allowed_values("stage");
  return names[static_cast<std::size_t>(stage)].c_str();
}

std::string Case::base_path() const { return suite + "/" + results::base_name(name); }

std::string too_little_memory(std::uint64_t needed, std::uint64_t budget) {
  if (needed == 0) return "the memory budget of " + format_bytes(budget) + " per rank is too small";
  return "needs " + format_bytes(needed) + "; the memory budget is " + format_bytes(budget) + " per rank";
}

std::string together_words(bool gpus, bool together) {
  if (together) return gpus ? "all GPUs" : "all cores";
  return gpus ? "one GPU at a time" : "one rank at a time";
}

}  // namespace assay
