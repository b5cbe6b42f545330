// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/place_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "suites/storage/engine.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/storage_metrics.hpp"

namespace assay::storage {
namespace {

/// What moves the data of this node: the rates of another engine are not those of the same storage.
std::string engine_of(const Context& context) {
  const bool threads = context.config.options.text("storage.engine") == "threads";
  std::string why;
  const auto engine = make_engine(threads ? "threads" : "auto", 1, why);
  return "engine " + engine->name() + (why.empty() ? "" : " (" + why + ")");
}

/// What namesakes on other nodes should have alike.
std::string kind_of(const Place& place, const std::string& engine) {
  std::vector<std::string> parts;
  for (const Disk& d : place.disks) parts.push_back("disk " + d.kind());
  std::sort(parts.begin(), parts.end());
  std::string out = place.mount.type;
  for (const std::string& part : parts) out += "; " + part;
  return out + "; " + engine;
}

double sum(const Place& place, double DiskHealth::*value) {
  double out = place.disks.empty() ? results::not_taken : 0;
  for (const Disk& disk : place.disks) out += disk.health.*value;
  return out;
}

void tell_odd_ones(const std::string& path, const Place& place, const std::string& engine, Context& context,
                   int entity) {
  const std::string mine = kind_of(place, engine);
  const auto kinds = context.leaders->all_gather_text(mine);
  const std::string usual = usual_one(kinds);
  if (usual.empty() || mine == usual) return;
  context.record.launch_event("warn", "mismatch", fmt::format("{}: {}; most nodes: {}", path, mine, usual),
                              entity);
}

/// A node that cannot look at its place takes part in what the nodes gather all the same: they would wait for
/// it.
Place place_of(const std::string& path, const Case& c, Context& context) {
  try {
    return look_at_place(path);
  } catch (const Error&) {
    leave_place(c, context);
    throw;
  }
}

}  // namespace

double greatest(const std::vector<Disk>& disks, double DiskHealth::*value) {
  double out = results::not_taken;
  for (const Disk& disk : disks) out = std::fmax(out, disk.health.*value);  // of two the one that is no NaN
  return out;
}

std::string usual_one(const std::vector<std::string>& descriptions) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& d : descriptions) ++counts[d];
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() || 2 * most->second <= descriptions.size() ? "" : most->first;
}

void leave_place(const Case& c, Context& context) {
  if (c.operation == "place" && c.parameters.at("when") == "before" && context.leaders != nullptr)
    context.leaders->all_gather_text("");
}

void run_place(const Case& c, Context& context, Site& site) {
  if (context.leaders == nullptr) return;  // one rank reports for its node
  const auto index = c.parameters.at("path_index").get<std::size_t>();
  const bool after = c.parameters.at("when") == "after";
  const int entity = context.entities.node(context.topology.me().node);
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == c.operation) context.record.declare(m);
  const Place place = place_of(site.paths[index], c, context);
  auto& row = context.record.add_row(entity);
  row.t.push_back(context.since_start(now_s()));
  row.block.push_back(0);
  row.values["total"] = {place.total_bytes};
  row.values["free"] = {place.free_bytes};
  row.values["free_inodes"] = {place.free_inodes};
  row.values["link_rate"] = {place.link_rate};
  const double hottest = greatest(place.disks, &DiskHealth::temperature_k);
  row.values["temperature"] = {hottest > 0 ? hottest : results::not_taken};
  row.values["percentage_used"] = {greatest(place.disks, &DiskHealth::percentage_used) / 100};
  row.values["unsafe_shutdowns"] = {sum(place, &DiskHealth::unsafe_shutdowns)};
  const double errors = sum(place, &DiskHealth::media_errors);
  row.values["media_errors"] = {errors};
  if (!after) {
    const std::string engine = engine_of(context);
    context.record.event("storage-place", site.paths[index] + ": " + place.text() + "; " + engine, entity);
    site.media_errors[index] = errors;
    return tell_odd_ones(site.paths[index], place, engine, context, entity);
  }
  if (errors > site.media_errors[index])
    context.record.launch_event("fail", "corrupt",
                                fmt::format("{}: {} more media errors than before: {}", site.paths[index],
                                            errors - site.media_errors[index], place.text()),
                                entity);
}

}  // namespace assay::storage
