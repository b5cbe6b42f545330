// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay::cli {

/// A device or transport of assay, and whether this build can use it.
struct Component {
  std::string name;
  bool built = false;
  std::string detail;  ///< what it is, or why it is not built
};
std::vector<Component> device_components();
std::vector<Component> transport_components();
/// What stands between this machine and the files that it reads.
std::vector<Component> reading_components();

/// `assay --version`: assay, every library, every device and transport, how files from elsewhere are read.
std::string version_text();

}  // namespace assay::cli
