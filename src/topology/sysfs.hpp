// SPDX-License-Identifier: Apache-2.0
// Reading small text trees (/sys, /proc) below a prefix. Nothing here throws: what cannot be read is empty or
// NaN.
#pragma once

#include <string>
#include <vector>

namespace assay::sysfs {

/// One line of printable ASCII: firmware and drivers hand out bytes that are no UTF-8. Outer blanks are
/// removed.
std::string clean(const std::string& text);

/// First line of a file, cleaned; empty when it cannot be read.
std::string line(const std::string& path);

/// The leading number of a file ("16.0 GT/s PCIe" -> 16); NaN when there is none.
double number(const std::string& path);

/// The leading number of a text; NaN when there is none.
double leading_number(const std::string& text);

/// Names in a directory, sorted; empty when it cannot be read.
std::vector<std::string> entries(const std::string& directory);

/// Names in a directory that are `prefix` and a whole number, by that number.
std::vector<std::string> numbered(const std::string& directory, const std::string& prefix);

bool exists(const std::string& path);

/// Last part of where a symbolic link points to; empty when it is none.
std::string link_name(const std::string& path);

/// The path with all links resolved; empty when it does not exist.
std::string real_path(const std::string& path);

/// Whether a name is the address of a PCI function: 0000:3b:00.0, behind Intel's VMD 10000:01:00.0.
bool is_pci_function(const std::string& name);

/// Parses a CPU list as the kernel writes it; empty for nonsense.
std::vector<int> cpu_list(const std::string& path);

}  // namespace assay::sysfs
