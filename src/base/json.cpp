// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;
template class nlohmann::detail::serializer<assay::Json>;
template class nlohmann::detail::lexer<assay::Json, assay::JsonTextAdapter>;
template class nlohmann::detail::parser<assay::Json, assay::JsonTextAdapter>;
