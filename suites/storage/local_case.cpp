// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/local_case.hpp"

#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {

void run_sequential(const Case& c, Context& context, Site& site) {
  const int entity = context.entities.node(context.topology.me().node);
  const bool write = c.operation.ends_with("write");
  begin_case(c, context, entity);
  DamageLog log({site.key, site.files(), 2, 0}, entity, context);
  LocalFile file;
  Evidence evidence;
  SampleSeries series;
  Together together(context.node);
  const double begin = now_s();
  together.guarded([&] { file.open(c, context, site, log, sequential_depth, context.node.size()); });
  context.node.barrier();  // all have looked at the space before any takes of it
  lay_out_together(file.transfer, 0.3 * c.seconds, together, context.node);
  evidence.compare_with_caches(c, file.transfer ? static_cast<double>(file.transfer->file_bytes()) : 0,
                               c.stage == Stage::node_local ? context.node : context.world);
  if (!together.any(false)) {
    // The module counts for all processes of the node.
    const auto before = on_gpus(c) && context.node.rank() == 0 ? nvidia_fs_now() : std::nullopt;
    series = sample_transfer(*file.transfer, write, c, now_s() - begin, log, together, context, evidence);
    const auto after = before ? nvidia_fs_now() : std::nullopt;
    if (after) evidence.module_moved = write ? after->written - before->written : after->read - before->read;
    evidence.gpu_path = file.gpu_path.value_or(GpuPath::direct);
  }
  auto* row =
      report_node(series, file.transfer ? file.transfer->chunk_bytes() : 0, evidence, file.where, c, context);
  // What the disks' links carry bounds reads; caches of disks and of servers make writes another matter.
  if (row != nullptr && c.operation == "read")
    together.guarded([&] { row->values["link_rate"] = {look_at_place(file.where).link_rate}; });
  if (row != nullptr && row->values.contains("bandwidth"))
    site.alone[c.operation][c.parameters.at("path_index")] = median(row->values["bandwidth"]);
  together.rethrow();
}

}  // namespace assay::storage
