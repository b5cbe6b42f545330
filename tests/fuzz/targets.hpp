// SPDX-License-Identifier: Apache-2.0
// Functions that take any bytes and must neither crash nor hang. libFuzzer calls one of them for as long as
// it is let; the replay program calls them with every file of the corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "results/model.hpp"

namespace assay::fuzz {

using Target = void (*)(const std::string& input);

void config(const std::string& input);  ///< a TOML configuration
void limits(const std::string& input);  ///< a limits file
void inject(const std::string& input);  ///< a fault of `run --inject`
void values(
    const std::string& input);  ///< the first byte says which: size, duration, quantity, CPU list, glob ...
void bytes(const std::string& input);    ///< a results file, as it is
void edits(const std::string& input);    ///< changes to a good results file, with a new checksum
void partial(const std::string& input);  ///< the texts of a partial directory, with new checksums

void topology(const std::string& input);  ///< a topology file
void simulate(const std::string& input);  ///< a fault of `simulate`
/// Files of another tool, parted by zero bytes; the first byte says which tool.
void import_file(const std::string& input);

/// All targets of this build by name.
const std::vector<std::pair<std::string, Target>>& targets();

/// Ends the process so that the fuzzer takes it for a crash: something came out that must never.
[[noreturn]] void broken(const std::string& what);

/// A new directory in memory if there is one, removed at exit.
const std::string& scratch_directory();

/// Everything that the commands do with a results file or directory. Throws nothing but Error(usage, data).
void use_results(const std::string& path);
void use_results(const results::Results& results);

}  // namespace assay::fuzz
