// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/model.hpp"
#include "topology/entities.hpp"
#include "topology/topology.hpp"

namespace assay {

/// The tables of /inventory by kind (node, cpu, numa, dimm, nic, pci, device); kinds without a part are left
/// out. Columns are documented in suites/inventory/README.md. Text "" and number NaN mean that the node does
/// not tell.
std::map<std::string, results::InventoryTable> inventory_tables(const Topology& topology,
                                                                const EntityTable& entities);

/// The rows of /environment: software versions and the environment variables that change what is measured.
std::vector<results::EnvironmentRow> environment_rows(const Topology& topology);

/// The options of a kernel command line that change speed or isolation, sorted; what names the node's own
/// disks, addresses and console is left out, so that equal nodes compare equal.
std::string performance_options(const std::string& kernel_cmdline);

/// NICs by port: interfaces that ride on an InfiniBand or RoCE port, virtual ones and loopback are not
/// counted.
std::vector<const Nic*> physical_nics(const Node& node);

}  // namespace assay
