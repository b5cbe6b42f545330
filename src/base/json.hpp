// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {
/// Keys keep their order, so that text made from it (configuration, plan) hashes alike on every rank.
using Json = nlohmann::ordered_json;

/// What Json::parse reads a std::string with.
using JsonTextAdapter = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
}  // namespace assay

// Made once, in json.cpp, and not again in each of the many files that read or write JSON: half of their
// compile time.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<assay::Json>;
extern template class nlohmann::detail::lexer<assay::Json, assay::JsonTextAdapter>;
extern template class nlohmann::detail::parser<assay::Json, assay::JsonTextAdapter>;
