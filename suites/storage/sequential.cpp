// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/sequential.hpp"

#include <algorithm>
#include <limits>

#include "base/clock.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {

SampleSeries sample_transfer(Transfer& transfer, bool write, const Case& c, double setup_s, DamageLog& log,
                             Together& together, Context& context, Evidence& evidence) {
  std::uint64_t runs = 0;
  Operation operation;
  operation.sync = [&] { transfer.prepare(write); };
  operation.run = [&](std::uint64_t k) {
    for (std::uint64_t i = 0; i < k; ++i) {
      if (i > 0) transfer.prepare(write);  // in a warm-up
      // What is overwritten before it is synced reaches the storage once.
      if (write && i > 0 && i % transfer.layout().chunks == 0) transfer.sync();
      transfer.move(write);
    }
    if (write) transfer.sync();
    runs += k;
  };
  if (!write)
    operation.verify = [&](std::size_t) { evidence.verified += static_cast<double>(transfer.verify()); };
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  const std::string path = c.parameters.at("path").get<std::string>();
  const StorageMeter meter(write, path);
  const DeviceMeter disks({path}, context.node);
  SampleSeries series = sample(together.wrap(operation), together.wrap(plan));
  evidence.moved = meter.moved();
  evidence.device_moved = disks.moved(write);
  evidence.slow_disk = disks.slow_disk(write);
  if (!write) evidence.resident = transfer.resident_share();
  evidence.asked = static_cast<double>(runs * transfer.chunk_bytes());
  const double begin = now_s();
  if (write) {
    double stored = 1;
    together.guarded([&] { stored = transfer.evict(); });
    together.any(false);  // all have looked at a file that they share before any reads it
    together.guarded([&] { evidence.verified = stored * static_cast<double>(transfer.verify_written()); });
  }
  series.verify_s += now_s() - begin;
  together.guarded([&] { transfer.close(); });  // some file systems tell only then what they could not write
  evidence.take(log);
  context.record.add_time(setup_s + series.warmup_s, series.timed_s, series.verify_s);
  return series;
}

namespace {

const char* rate_name(const Evidence& evidence, const Case& c) {
  if (!evidence.cold()) return "bandwidth_cached";
  const GpuPath path = on_gpus(c) ? evidence.shown_path() : GpuPath::direct;
  return path == GpuPath::direct     ? "bandwidth"
         : path == GpuPath::unproven ? "bandwidth_unproven"
                                     : "bandwidth_compat";
}

}  // namespace

NodeSeries gather_node(const SampleSeries& series, std::uint64_t chunk_bytes, const Evidence& evidence,
                       Context& context) {
  Json mine = evidence.to_json();
  mine["start"] = series.start_s;
  mine["seconds"] = series.seconds;
  mine["chunk"] = chunk_bytes;
  NodeSeries out;
  std::size_t samples = std::numeric_limits<std::size_t>::max();
  std::vector<Json> ranks;
  for (const std::string& text : context.node.all_gather_text(mine.dump())) {
    ranks.push_back(Json::parse(text));
    out.evidence.add(Evidence::from(ranks.back()));
    samples = std::min(samples, ranks.back()["seconds"].size());
  }
  if (context.node.rank() != 0) return out;
  for (std::size_t s = 0; s < samples; ++s) {
    double first = std::numeric_limits<double>::infinity(), last = 0, bytes = 0;
    for (const Json& rank : ranks) {
      const double start = rank["start"][s].get<double>();
      first = std::min(first, start);
      last = std::max(last, start + rank["seconds"][s].get<double>());
      bytes += rank["chunk"].get<double>();
    }
    out.t.push_back(context.since_start(first));
    out.rates.push_back(bytes / (last - first));
  }
  return out;
}

CaseRecord::Row* report_both(const NodeSeries& written, const std::string& write, const NodeSeries& read_back,
                             const std::string& read, const std::string& where, const Case& c,
                             Context& context) {
  const std::size_t samples = std::min(written.rates.size(), read_back.rates.size());
  if (samples == 0) return nullptr;
  auto& row = context.record.add_row(context.entities.node(context.topology.me().node));
  const auto some = [&](const std::vector<double>& all) {
    return std::vector<double>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(samples));
  };
  row.t = some(written.t);
  for (std::size_t s = 0; s < samples; ++s) row.block.push_back(static_cast<std::int32_t>(s * 3 / samples));
  row.values[write + (written.evidence.cold() ? "" : "_cached")] = some(written.rates);
  row.values[read + (read_back.evidence.cold() ? "" : "_cached")] = some(read_back.rates);
  Evidence all = read_back.evidence;
  all.verified *= 2;  // what was compared had been written and read
  all.add(written.evidence);
  all.store(row);
  Evidence::tell_cached_of(written.evidence, read_back.evidence, where, c, context, row.entity);
  return &row;
}

CaseRecord::Row* report_node(const SampleSeries& series, std::uint64_t chunk_bytes, const Evidence& evidence,
                             const std::string& where, const Case& c, Context& context) {
  NodeSeries all = gather_node(series, chunk_bytes, evidence, context);
  if (all.rates.empty()) return nullptr;
  auto& row = context.record.add_row(context.entities.node(context.topology.me().node));
  row.t = std::move(all.t);
  row.values[rate_name(all.evidence, c)] = std::move(all.rates);
  row.block = series.block;
  all.evidence.report(row, where, c, context);
  return &row;
}

}  // namespace assay::storage
