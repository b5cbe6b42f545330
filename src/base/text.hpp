// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

/// The parts between the separators, one more than these; empty ones stay.
std::vector<std::string> split(std::string_view text, char separator);

}  // namespace assay
