// SPDX-License-Identifier: Apache-2.0
// --only and --exclude: which nodes of the launch take part. The ranks of the others sleep until the run is
// over.
#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "transport/communicator.hpp"

namespace assay {

/// `hosts` by rank, the lists as typed (host lists; --exclude may name a file, whose text is given here). The
/// ranks that take part, ascending. Throws Error(usage) when --only names a missing node, or when no rank is
/// left.
std::vector<int> choose_ranks(const std::vector<std::string>& hosts, const std::string& only,
                              const std::string& exclude);

/// What was typed after --only or --exclude as a list without white space, of the file where a file was
/// named. Throws Error(usage).
std::string node_list(const std::string& option, const std::string& typed);

/// Whether `host` takes part by these lists (without files).
bool is_asked_for(const std::string& host, const std::string& only, const std::string& exclude);

/// Collective on the whole launch: rank 0 reads the file. All ranks get the same answer or the
/// same Error.
std::vector<int> select_ranks(Communicator& launch, const Config& config);

}  // namespace assay
