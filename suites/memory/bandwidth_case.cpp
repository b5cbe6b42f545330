// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "measure/sizing.hpp"
#include "measure/statistics.hpp"
#include "suite/gpu_bound.hpp"
#include "suite/together.hpp"
#include "suites/memory/layout.hpp"
#include "suites/memory/memory_cases.hpp"
#include "suites/memory/memory_metrics.hpp"
#include "suites/memory/stream_data.hpp"

namespace assay::memory {
namespace {

using kernels::StreamOp;

StreamOp op_from(const std::string& name) {
  for (const StreamOp op : {StreamOp::read, StreamOp::write, StreamOp::copy, StreamOp::triad})
    if (name == kernels::to_string(op)) return op;
  throw Error(ErrorKind::internal, "no such memory operation: " + name);
}

void report(const StreamData::Check& check, Context& context) {
  if (check.count == 0) return;
  const double t = context.since_start(now_s());
  if (!check.located) {
    context.record.event("memory-digest", "digest mismatch not reproduced on re-read: transient read error",
                         context.device_entity);
    return context.record.miscompare({"", context.device_entity, 0, 0, 0, 0, t});
  }
  for (std::size_t i = 0; i < check.first.size(); ++i) {
    const kernels::ErrorRecord& e = check.first[i];
    const bool last = i + 1 == check.first.size();
    context.record.miscompare({"", context.device_entity, e.index, e.expected, e.actual, e.reread, t},
                              last ? check.count - i : 1);
  }
}

/// A third of the time after which a rank without progress is taken for hung: a pass over the arrays takes
/// little more than filling one of them.
constexpr double least_fill_s = 2;

/// Fills the arrays, and counts each part as progress. Where the device is far too slow the arrays are
/// shorter, which is told.
void fill_arrays(std::optional<StreamData>& data, const Case& c, StreamOp op, Context& context) {
  const auto planned = c.parameters.at("elements").get<std::size_t>();
  const double planned_s = c.overhead_seconds / static_cast<double>(stream_buffers(op));
  Filling filling;
  filling.share_s = std::max(least_fill_s, size_patience * planned_s);
  filling.part_done = [&context](double begin_s) {
    context.apply_injected_delay(begin_s, 1, true);
    context.count_batch();
  };
  const double begin = now_s();
  data.emplace(context.device, op, planned, context.random.key(), filling);
  const std::size_t count = data->count();
  if (count == planned) return;
  const auto kib = [](std::size_t elements) { return elements * sizeof(double) >> 10; };
  const std::string text = fmt::format("cut short: arrays of {} instead of {} KiB, filled in {:.3g} s",
                                       kib(count), kib(planned), now_s() - begin);
  context.record.event("memory-cut-short", c.name + ": " + text, context.device_entity);
  // Half of them are beyond the caches still.
  if (2 * count < planned) context.record.set_state(results::CaseState::incomplete, text);
}

/// The same on all ranks of the node. Those that run together have arrays of one size. Collective.
void set_up(std::optional<StreamData>& data, const Case& c, StreamOp op, Together& together,
            Context& context) {
  together.guarded([&] { fill_arrays(data, c, op, context); });
  const auto mine = data ? static_cast<double>(data->count()) : std::numeric_limits<double>::infinity();
  const double least = context.node.min(mine);
  if (c.parameters.at("mode") != "together") return;
  together.guarded([&] {
    data->cut(static_cast<std::size_t>(least));
    // Arrays that caches may hold say nothing of the memory, here neither.
    if (2 * least < static_cast<double>(c.parameters.at("elements").get<std::size_t>()))
      context.record.set_state(results::CaseState::incomplete,
                               "cut short with a rank of the node that fills its arrays too slowly");
  });
}

/// Checks the last result; a fault made on purpose comes first.
void check(StreamData& data, Context& context) {
  context.injection_point("memory", data.result().data(), data.result().size(), sizeof(double));
  report(data.check(), context);
}

Operation operation_of(StreamData& data, StreamOp op, Context& context) {
  Operation operation;
  operation.run = [&data](std::uint64_t k) { data.run(k); };
  operation.sync = [&data] { data.prepare(); };
  if (op != StreamOp::read) operation.verify = [&data, &context](std::size_t) { check(data, context); };
  return operation;
}

/// Passes of a sample. One beyond the caches takes milliseconds on a host, and on a GPU half of one, to which
/// the start of a kernel and the wait for it would add some percent.
std::uint64_t passes_of(StreamData& data, const Context& context) {
  constexpr double least_s = 5e-3, most = rotations;
  if (!context.device.has_streams()) return 1;
  data.run(1);  // the first launch of a kernel loads it
  const double begin = now_s();
  data.run(1);
  return static_cast<std::uint64_t>(std::clamp(std::ceil(least_s / (now_s() - begin)), 1.0, most));
}

/// What a rank tells the others of its node about its series.
Json series_json(const SampleSeries& series, double bytes, const Context& context) {
  std::map<std::string, double> shares;  // NUMA domain -> share of this rank's threads
  const Node& node = context.topology.my_node();
  const int threads = std::max(1, context.device.threads());
  for (int i = 0; i < threads; ++i) {
    const int domain = domain_of(node, context.device.numa_of_thread(i));
    shares[std::to_string(domain)] += 1.0 / threads;
  }
  return Json{{"start", series.start_s}, {"seconds", series.seconds}, {"bytes", bytes}, {"shares", shares}};
}

/// The bandwidth of one domain: what all ranks moved in it, from the first start to the last end of each
/// sample.
CaseRecord::Row& add_domain_row(const std::string& domain, const std::vector<Json>& ranks,
                                const SampleSeries& series, Context& context) {
  const int entity = context.entities.numa(context.topology.me().node, std::stoi(domain));
  if (entity < 0)
    throw Error(ErrorKind::internal,
                "no NUMA domain " + domain + " in " + context.topology.my_node().hostname);
  auto& row = context.record.add_row(entity);
  for (std::size_t s = 0; s < series.seconds.size(); ++s) {
    double first = std::numeric_limits<double>::infinity(), last = 0, bytes = 0;
    for (const Json& rank : ranks) {
      const double share = rank["shares"].value(domain, 0.0);
      if (share <= 0 || s >= rank["start"].size()) continue;
      const double start = rank["start"][s].get<double>();
      first = std::min(first, start);
      last = std::max(last, start + rank["seconds"][s].get<double>());
      bytes += share * rank["bytes"].get<double>();
    }
    row.t.push_back(context.since_start(first));
    row.values["bandwidth"].push_back(bytes / (last - first));
  }
  row.block = series.block;
  return row;
}

void add_domain_rows(const SampleSeries& series, double bytes, std::size_t count, Context& context) {
  std::vector<Json> ranks;
  for (const auto& text : context.node.all_gather_text(series_json(series, bytes, context).dump()))
    ranks.push_back(Json::parse(text));
  const Json& mine = ranks[static_cast<std::size_t>(context.node.rank())];
  for (const auto& [domain, share] : mine["shares"].items()) {
    bool lowest = true;  // the lowest rank with threads in a domain reports it
    for (int i = 0; i < context.node.rank(); ++i)
      lowest = lowest && !ranks[static_cast<std::size_t>(i)]["shares"].contains(domain);
    if (lowest) add_domain_row(domain, ranks, series, context).integers["elements"] = {count};
  }
}

}  // namespace

CaseRecord::Row& add_device_row(const SampleSeries& series, double bytes, Context& context) {
  auto& row = context.record.add_row(context.device_entity);
  const auto repetitions = static_cast<double>(series.repetitions);
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    row.t.push_back(context.since_start(series.start_s[i]));
    row.values["bandwidth"].push_back(repetitions * bytes / series.seconds[i]);
  }
  row.block = series.block;
  return row;
}

/// Declares what the case measures, and whether it is judged; the bound of a GPU's memory where there is one.
GpuBound declare(const Case& c, StreamOp op, bool cached, Context& context) {
  auto& bandwidth = context.record.declare(metrics().of("stream", "bandwidth"));
  context.record.declare_integers("elements", {}, {});
  if (cached) {
    bandwidth.required = false;
    bandwidth.role = results::Role::covariate;
  }
  // Ranks that run together fill the channels of the memory; what writes only may go around them in part.
  if (op != StreamOp::write && c.parameters.at("mode") == "together")
    bandwidth.judging->floor = results::Floor::memory_channels;
  for (const auto& [key, value] : context.device.identity()) context.record.parameter(key, value);
  if (cached || !context.device.has_own_memory()) return {};
  bandwidth.judging->floor = results::Floor::gpu_bound;
  const GpuBound bound = memory_bound(own_gpu(context));
  declare_bound(metrics().of("stream", "bound_share"), bound, context.record);
  return bound;
}

void run_bandwidth(const Case& c, Context& context, OwnBandwidth& own) {
  const StreamOp op = op_from(c.parameters.at("operation").get<std::string>());
  const auto planned = c.parameters.at("elements").get<std::size_t>();
  const std::size_t worked_on = planned * sizeof(double) * kernels::stream_arrays(op);
  // The plan has the caches of hosts; those of a GPU are read here.
  const bool cached =
      c.parameters.at("cached") == 1 || worked_on < gpu_cache_multiple * context.device.cache_bytes();
  const GpuBound bound = declare(c, op, cached, context);
  std::optional<StreamData> data;
  const auto add_row = [&](const SampleSeries& series, double bytes) {
    auto& row = add_device_row(series, bytes, context);
    row.integers["elements"] = {data->count()};
    if (*bound.by != 0) add_bound_share(row, "bandwidth", bound);
  };

  Together together(context.node);
  SamplingPlan plan = context.sampling(c.seconds);
  plan.repetitions = 1;
  const double setup_begin = now_s();
  set_up(data, c, op, together, context);
  const std::size_t count = data ? data->count() : planned;
  together.guarded([&] { plan.repetitions = passes_of(*data, context); });
  plan.repetitions = static_cast<std::uint64_t>(context.node.max(static_cast<double>(plan.repetitions)));
  if (data) data->set_passes(plan.repetitions);
  const double setup_s = now_s() - setup_begin;
  const double bytes =
      static_cast<double>(count) * static_cast<double>(kernels::stream_bytes_per_element(op));
  const auto finish = [&](const SampleSeries& series) {
    const double begin = now_s();
    if (op == StreamOp::read) check(*data, context);
    context.record.add_time(series.warmup_s, series.timed_s, series.verify_s + now_s() - begin);
  };
  if (c.parameters.at("mode") == "alone") {
    context.take_turns(c.turns, [&] {
      together.guarded([&] {
        const SampleSeries series = sample(operation_of(*data, op, context), plan);
        finish(series);
        add_row(series, bytes);
      });
    });
    share_times(context.record, context.node);
  } else if (!together.any(false)) {
    const SampleSeries series = sample(together.wrap(operation_of(*data, op, context)), together.wrap(plan));
    together.guarded([&] { finish(series); });
    if (!together.any(false)) {
      if (!context.device.has_own_memory())
        add_domain_rows(series, bytes, count, context);
      else
        add_row(series, bytes);
      if (op == StreamOp::copy && !cached && count == planned && context.device.has_own_memory() &&
          !series.seconds.empty())
        own = {static_cast<double>(series.repetitions) * bytes / median(series.seconds), c.name};
    }
  }
  context.record.add_time(setup_s, 0, 0);  // filling the arrays is part of warming up
  together.rethrow();
}

}  // namespace assay::memory
