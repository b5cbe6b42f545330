// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results/model.hpp"

namespace assay::results {

/// Takes out of all texts what would act on the terminal that prints them: control characters (line
/// ends stay in free texts, but not in the names of entities) and bytes that are not UTF-8. JSON values stay
/// as they are.
void make_printable(Results& results);

}  // namespace assay::results
