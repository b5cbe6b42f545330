// SPDX-License-Identifier: Apache-2.0
#include "run/case.hpp"

#include "results/case_name.hpp"

namespace assay {

const char* to_string(Stage stage) noexcept {
  switch (stage) {
    case Stage::inventory: return "inventory";
    case Stage::node_local: return "node-local";
    case Stage::pairs: return "pairs";
    case Stage::groups: return "groups";
    case Stage::world: return "world";
    case Stage::train: return "train";
    case Stage::burn: return "burn";
  }
  return "node-local";
}

std::string Case::base_path() const { return suite + "/" + results::base_name(name); }

}  // namespace assay
