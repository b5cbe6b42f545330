// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace assay {

/// A word of a command line, quoted where a shell would need it.
std::string shell_word(const std::string& word);

}  // namespace assay
