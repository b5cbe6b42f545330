// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace assay::ucx {

/// The lanes in what ucp_ep_print_info prints, sorted: "#   lane[0]:  2:tcp/eth0.0 md[1] ..." is "tcp/eth0",
/// several are "cma/memory+posix/memory". Empty where there is none.
std::string path_from_info(std::string_view text);

}  // namespace assay::ucx
