// SPDX-License-Identifier: Apache-2.0
// What a process may use of memory, processor time and open files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// Sizes of files, of directories three levels deep, and of lists "a.h5,b.h5" of them; what is not there
/// counts 0.
std::uint64_t input_bytes(const std::vector<std::string>& inputs);

/// Limits memory and processor time of this process to what an honest input of this size needs many times
/// over, and forbids core files.
void bound_process(std::uint64_t input_bytes) noexcept;

/// Address space that this process may still take under `ulimit -v`; the largest number without a limit.
/// Works before libraries are initialized.
std::uint64_t free_address_space() noexcept;
/// The stacks of one thread for each CPU that this process may use.
std::uint64_t stacks_bytes() noexcept;

/// How many files this process may have open at most, once raise_open_files() has been called.
std::uint64_t most_open_files() noexcept;
/// Lets this process have as many files open as the system allows it; returns how many.
std::uint64_t raise_open_files() noexcept;

/// "a.h5, b.h5: reading it crashes (signal 11): ..." for a process that a signal ended.
std::string describe_lost_reader(const std::vector<std::string>& inputs, int signal);

}  // namespace assay
