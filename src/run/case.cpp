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

std::string Case::base_path() const {
  const auto dot = name.rfind('.');
  const bool suffix = dot != std::string::npos && dot + 2 < name.size() && (name[dot + 1] == 'p' || name[dot + 1] == 'c') &&
                      name.find_first_not_of("0123456789", dot + 2) == std::string::npos;
  return suite + "/" + (suffix ? name.substr(0, dot) : name);
}

}  // namespace assay
