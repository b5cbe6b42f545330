// SPDX-License-Identifier: Apache-2.0
// Measurements of other tools as results that are judged like any other. Input is not trusted: what is wrong
// is one line with file and line, Error(data).
#pragma once

#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "results/model.hpp"

namespace assay::imports {

/// Samples in a long table: node,device,metric,unit,better,sample,value[,time][,clock_hz][,block] and any
/// attributes; pairs have src,dst (NODE or NODE/DEVICE) instead of node,device. A column NAME[UNIT] is a
/// covariate of every sample, any other column an attribute of the entity, which must not change.
results::Results import_csv(const std::vector<InputFile>& files);

/// Output of nccl-tests, the text table or the JSON of `-J`. Runs on one node are measurements of that node;
/// runs on several are collectives of their devices, one draw of a group per file.
results::Results import_nccl_tests(const std::vector<InputFile>& files);

/// Output of the OSU micro-benchmarks. It does not say where it ran: a line `# nodes: A B` in the file does,
/// or the file's name, NAME@A,B.txt; with neither, the file's name stands for one node. Two nodes of a
/// point-to-point test are a link from the first to the second.
results::Results import_osu(const std::vector<InputFile>& files);

}  // namespace assay::imports
