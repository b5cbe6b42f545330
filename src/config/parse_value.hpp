// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "config/option.hpp"

namespace assay {

/// The value of an option from the texts typed for it; no texts give its default. The message of the
/// Error(usage) does not name the option, because the command line and a TOML file name it differently.
OptionValues::Value parse_option_value(const OptionSpec& spec, const std::vector<std::string>& texts);

}  // namespace assay
