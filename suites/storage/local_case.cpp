// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/local_case.hpp"

#include "base/clock.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/sequential.hpp"

namespace assay::storage {

void run_sequential(const Case& c, Context& context, const Site& site) {
  const int entity = context.entities.node(context.topology.me().node);
  const bool write = c.operation == "write";
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
  if (!together.any(false))
    series =
        sample_transfer(*file.transfer, write, c.seconds, now_s() - begin, log, together, context, evidence);
  auto* row =
      report_node(series, file.transfer ? file.transfer->chunk_bytes() : 0, evidence, file.where, c, context);
  // What the disks' links carry bounds reads; caches of disks and of servers make writes another matter.
  if (row != nullptr && !write)
    together.guarded([&] { row->values["link_rate"] = {look_at_place(file.where).link_rate}; });
  together.rethrow();
}

}  // namespace assay::storage
