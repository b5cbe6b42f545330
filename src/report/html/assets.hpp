// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace assay::report {

std::string_view page_style() noexcept;
/// The bundled script; empty in a build without it.
std::string_view page_script() noexcept;

}  // namespace assay::report
