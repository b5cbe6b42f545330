// SPDX-License-Identifier: Apache-2.0
// What a process may use of memory, processor time and open files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay {

/// Bytes of all inputs: files, directories three levels deep, and lists "a.h5,b.h5" of them. What does not
/// exist counts 0. Throws nothing.
std::uint64_t input_bytes(const std::vector<std::string>& inputs);

/// Limits memory and processor time of this process to several times what a valid input of this many bytes
/// needs, and forbids core files. Limits that the system refuses are left as they are.
void bound_process(std::uint64_t input_bytes) noexcept;

/// Address space that this process may still take under `ulimit -v`; the largest number without a limit.
/// Works before libraries are initialized.
std::uint64_t free_address_space() noexcept;
/// The stacks of one thread for each CPU that this process may use.
std::uint64_t stacks_bytes() noexcept;

/// The hard limit of open files, which raise_open_files() makes the soft one.
std::uint64_t most_open_files() noexcept;
/// Lets this process have as many files open as the system allows it; returns how many.
std::uint64_t raise_open_files() noexcept;

/// "a.h5, b.h5: reading it crashes (signal 11): ..." for a process that a signal ended.
std::string describe_lost_reader(const std::vector<std::string>& inputs, int signal);

}  // namespace assay
