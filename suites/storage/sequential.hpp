// SPDX-License-Identifier: Apache-2.0
// What cases with one block after the other share.
#pragma once

#include "suite/together.hpp"
#include "suites/storage/evidence.hpp"
#include "suites/storage/transfer.hpp"

namespace assay::storage {

inline constexpr int sequential_depth = 8;

/// Samples a transfer in which all ranks of `together` take part, checks what was read, and writes the case's
/// times.
SampleSeries sample_transfer(Transfer& transfer, bool write, const Case& c, double setup_s, DamageLog& log,
                             Together& together, Context& context, Evidence& evidence);

/// What all ranks of a node moved in each sample, from the first start to the last end.
struct NodeSeries {
  Evidence evidence;             ///< of all of them
  std::vector<double> t, rates;  ///< since run start; B/s. On the first rank of the node only
};
/// Collective over the node, whether or not this rank has a series.
NodeSeries gather_node(const SampleSeries& series, std::uint64_t chunk_bytes, const Evidence& evidence,
                       Context& context);

/// The row of a node that wrote and read back, each compared once: rates under these names, or with `_cached`
/// where the storage was not met. Null where nothing was measured.
CaseRecord::Row* report_both(const NodeSeries& written, const std::string& write, const NodeSeries& read_back,
                             const std::string& read, const std::string& where, const Case& c,
                             Context& context);

/// Collective over the node, whether or not this rank has a series: its first rank adds the row of the node,
/// which is what all of it moved from the first start to the last end of each sample. Null elsewhere, and
/// where nothing was measured.
CaseRecord::Row* report_node(const SampleSeries& series, std::uint64_t chunk_bytes, const Evidence& evidence,
                             const std::string& where, const Case& c, Context& context);

}  // namespace assay::storage
