// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay::storage {

/// The i-th of 2^bits numbers in a scattered order of `key`: a bijection, so that none comes twice.
std::uint64_t scattered(std::uint64_t i, int bits, std::uint64_t key) noexcept;

/// One rank of each node reads or writes blocks of 4 KiB at random places of a file, so many at a time.
void run_random(const Case& c, Context& context, const Site& site);

}  // namespace assay::storage
