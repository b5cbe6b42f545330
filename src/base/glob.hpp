// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace assay {

/// Whether the whole of `text` matches `pattern`: * any characters, ? one, [a-f] one of a set, [!a-f] none of
/// it, \x the character x. Like fnmatch without flags, but in at most pattern x text steps: that of the C
/// library takes exponential time on patterns of many stars, which may come out of a results file.
bool glob_match(std::string_view pattern, std::string_view text) noexcept;

}  // namespace assay
