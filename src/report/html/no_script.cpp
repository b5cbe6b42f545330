// SPDX-License-Identifier: Apache-2.0
// In place of the bundled script where there is none.
#include "report/html/assets.hpp"

namespace assay::report {
std::string_view page_script() noexcept { return {}; }
}  // namespace assay::report
