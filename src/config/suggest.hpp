// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace assay {

/// The candidate that `typed` most likely meant (least edit distance, at most a third of its length), or "".
std::string nearest_name(const std::string& typed, const std::vector<std::string>& candidates);

/// " (did you mean X?)" or "", to be appended to an error line; `prefix` is put before X, e.g. "--".
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& candidates,
                         const std::string& prefix = "");

/// "a, b, c".
std::string join(const std::vector<std::string>& texts, const std::string& separator = ", ");

}  // namespace assay
