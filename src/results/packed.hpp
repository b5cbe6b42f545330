// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace assay::results {

/// From so many bytes on an array is packed in the file: smaller ones gain little, and the index of the
/// chunks takes 2 KiB.
inline constexpr std::size_t packed_from_bytes = std::size_t{64} << 10;

/// From so many texts on they are of one length, and packed.
inline constexpr std::size_t packed_from_texts = 2000;

}  // namespace assay::results
