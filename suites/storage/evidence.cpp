// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "suites/storage/storage_plan.hpp"

namespace assay::storage {
namespace {

/// What one rank of a node has counted for all of them.
void add_counted(double& sum, double more) {
  if (std::isnan(more)) return;
  sum = std::isnan(sum) ? more : sum + more;
}

double counted_from(const Json& value) {
  return value.is_number() ? value.get<double>() : results::not_taken;
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f} %", std::floor(1000 * share) / 10); }

void Evidence::take(const DamageLog& log) {
  for (std::size_t kind = 0; kind < damage.size(); ++kind)
    damage[kind] = log.words(static_cast<Damage>(kind));
}

void Evidence::compare_with_caches(const Case& c, double bytes, Communicator& group) {
  const auto twice = c.parameters.find("server_cache_twice");
  if (twice != c.parameters.end()) server_cached = group.sum(bytes) < twice->get<double>();
}

void Evidence::share_moved(Communicator& group, bool counts) {
  const double share = asked / group.sum(asked);
  moved = group.sum(moved) * share;
  // Of a node whose disks do not count nobody knows what it moved for the others.
  device_moved = group.sum(counts ? device_moved : 0) * share;
  resident = group.max(resident);
}

void Evidence::add(const Evidence& other) {
  asked += other.asked;
  verified += other.verified;
  moved += other.moved;
  resident = std::max(resident, other.resident);
  server_cached = server_cached || other.server_cached;
  add_counted(module_moved, other.module_moved);
  add_counted(device_moved, other.device_moved);
  if (slow_disk.empty()) slow_disk = other.slow_disk;
  gpu_path = std::max(gpu_path, other.gpu_path);
  for (std::size_t kind = 0; kind < damage.size(); ++kind) damage[kind] += other.damage[kind];
}

Json Evidence::to_json() const {
  return {{"asked", asked},        {"verified", verified},           {"moved", moved},
          {"resident", resident},  {"module_moved", module_moved},   {"gpu_path", static_cast<int>(gpu_path)},
          {"damage", damage},      {"server_cached", server_cached}, {"device_moved", device_moved},
          {"slow_disk", slow_disk}};
}

Evidence Evidence::from(const Json& json) {
  Evidence out;
  out.asked = json.at("asked").get<double>();
  out.verified = json.at("verified").get<double>();
  out.moved = counted_from(json.at("moved"));
  out.resident = json.at("resident").get<double>();
  out.server_cached = json.at("server_cached").get<bool>();
  out.module_moved = counted_from(json.at("module_moved"));
  out.device_moved = counted_from(json.at("device_moved"));
  out.gpu_path = static_cast<GpuPath>(json.at("gpu_path").get<int>());
  json.at("slow_disk").get_to(out.slow_disk);
  json.at("damage").get_to(out.damage);
  return out;
}

void Evidence::store(CaseRecord::Row& row) const {
  row.values["moved_share"] = {moved_share()};
  row.values["resident_share"] = {resident};
  row.values["verified"] = {verified / asked};
  if (!std::isnan(device_moved)) row.values["device_share"] = {device_moved / asked};
  if (!std::isnan(module_moved)) row.values["direct_share"] = {module_moved / asked};
  for (std::size_t kind = 0; kind < damage.size(); ++kind)
    row.values[to_string(static_cast<Damage>(kind))] = {static_cast<double>(damage[kind])};
  const auto errors = std::accumulate(damage.begin(), damage.end(), std::uint64_t{0});
  row.values["errors"] = {static_cast<double>(errors)};
}

void Evidence::tell_cached(const std::string& where, const Case& c, Context& context, int entity) const {
  const std::string why =
      server_cached
          ? fmt::format(
                "the files of {} are smaller than twice the memory that --storage.cache says servers have",
                c.path())
      : disks_were_idle() ? fmt::format("the disks or the NFS client moved {} of the bytes of {}",
                                        percent(device_moved / asked), c.path())
      : std::isnan(moved)
          ? fmt::format("nothing counts how many bytes of {} met the storage", c.path())
          : fmt::format(
                "{} of the bytes of {} reached the storage, up to {} of a part were in the page cache before",
                percent(moved_share()), c.path(), percent(resident));
  const bool unknown = !server_cached && !disks_were_idle() && std::isnan(moved);
  context.record.event(
      "storage-cached",
      fmt::format("{}: {}: its rate {} one of caches", where, why, unknown ? "may be" : "is"), entity);
}

GpuPath Evidence::shown_path() const {
  if (gpu_path == GpuPath::compat || std::isnan(module_moved)) return gpu_path;
  return module_moved >= least_moved_share * asked ? GpuPath::direct : GpuPath::unproven;
}

void Evidence::tell_path(const std::string& where, const Case& c, Context& context, int entity) const {
  if (shown_path() == GpuPath::direct) return;
  const std::string why =
      gpu_path == GpuPath::compat ? "cuFile works in compatibility mode only, through host memory"
      : std::isnan(module_moved)
          ? "nothing shows that the data bypass host memory (no counters of nvidia-fs, and no file of a "
            "block device opened with O_DIRECT)"
          : fmt::format("nvidia-fs moved {} of the bytes", percent(module_moved / asked));
  context.record.event("storage-not-direct",
                       fmt::format("{}: {}: the rate of {} is not judged", where, why, c.path()), entity);
}

void Evidence::tell_slow_disk(const std::string& where, const Case& c, Context& context, int entity) const {
  if (!slow_disk.empty())
    context.record.event("storage-slow-disk", fmt::format("{}: {} in {}", where, slow_disk, c.path()),
                         entity);
}

bool Evidence::tell_cached_of(const Evidence& written, const Evidence& read_back, const std::string& where,
                              const Case& c, Context& context, int entity) {
  const Evidence& suspect = written.cold() ? read_back : written;
  if (suspect.cold()) return false;
  suspect.tell_cached(where, c, context, entity);
  return true;
}

void Evidence::report(CaseRecord::Row& row, const std::string& where, const Case& c, Context& context) const {
  store(row);
  if (!cold()) tell_cached(where, c, context, row.entity);
  if (on_gpus(c)) tell_path(where, c, context, row.entity);
  tell_slow_disk(where, c, context, row.entity);
}

}  // namespace assay::storage
