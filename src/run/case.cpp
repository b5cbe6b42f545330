// SPDX-License-Identifier: Apache-2.0
#include "run/case.hpp"

namespace assay {

const char* to_string(Stage stage) noexcept {
  switch (stage) {
    case Stage::inventory: return "inventory";
    case Stage::node_local: return "node-local";
    case Stage::pairs: return "pairs";
    case Stage::groups: return "groups";
    case Stage::world: return "world";
    case Stage::train: return "train";
  }
  return "node-local";
}

}  // namespace assay
