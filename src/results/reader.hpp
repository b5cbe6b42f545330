// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/confined.hpp"
#include "results/model.hpp"

namespace assay::results {

/// Reads NAME.h5 or a NAME.h5.partial directory in a process of its own (base/confined.hpp): HDF5 1.10.8
/// crashes or goes round in circles on damaged metadata (3 % of files with one changed byte). Sizes are
/// checked against the file before anything is allocated. Throws Error(data) with one line naming the file
/// and what is wrong with it.
Results load(const std::filesystem::path& path);
/// A results file in this process, which is one of its own, or has written the file itself.
Results load_own(const InputFile& file);
/// A directory that this process writes. Samples stay in its files, so it must outlive their use; `cache`
/// holds those used last, 32 MiB where none is given.
Results load_own_partial(const std::filesystem::path& partial, std::shared_ptr<ValueCache> cache = nullptr);

/// What `read` makes of `files` in a process of its own, checked and printable like what `load` returns.
Results read_results(const std::vector<std::string>& files,
                     const std::function<Results(const Inputs&)>& read);

}  // namespace assay::results
