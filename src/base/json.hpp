// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

namespace assay {
/// Keys keep their order, so that text made from it (configuration, plan) hashes alike on every rank.
using Json = nlohmann::ordered_json;
}  // namespace assay
