// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/storage_suite.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "base/system.hpp"
#include "suite/work_on_files.hpp"
#include "suites/storage/answer.hpp"
#include "suites/storage/checkpoint_case.hpp"
#include "suites/storage/cufile.hpp"
#include "suites/storage/damage_log.hpp"
#include "suites/storage/feed_case.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/hdf5_file.hpp"
#include "suites/storage/local_case.hpp"
#include "suites/storage/metadata_case.hpp"
#include "suites/storage/mpiio_case.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/place_case.hpp"
#include "suites/storage/random_case.hpp"
#include "suites/storage/refused.hpp"
#include "suites/storage/server_case.hpp"
#include "suites/storage/shared_case.hpp"
#include "suites/storage/storage_metrics.hpp"
#include "suites/storage/storage_plan.hpp"
#include "suites/storage/together_case.hpp"

namespace assay {
namespace {

OptionSpec option(const char* name, OptionKind kind, const char* default_text, const char* help,
                  const char* value) {
  OptionSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.default_text = default_text;
  spec.help = help;
  spec.value_name = value;
  return spec;
}

/// For a server to answer when the run begins. A gate of 15 s has no more, nor has what an earlier launch
/// left.
double answer_seconds(const Config& config) {
  return config.level == Level::smoke || !config.resume.empty() ? 4.0 : 20.0;
}

bool is_silent(const std::string& directory, const std::vector<std::string>& silent) {
  return std::find(silent.begin(), silent.end(), directory) != silent.end();
}

/// The paths that a case works in, by their places in --storage.paths.
std::vector<std::size_t> paths_of_case(const Case& c, const Context& context) {
  const auto all = storage::paths_of(context.config);
  if (c.parameters.contains("path_index") && c.operation != "servers")
    return {c.parameters.at("path_index").get<std::size_t>()};
  if (c.operation != "servers") return storage::local_paths(context.config, context.topology.lacks);
  std::vector<std::size_t> shared;
  for (std::size_t path = 0; path < all.size(); ++path)
    if (all[path].shared(context.topology.lacks)) shared.push_back(path);
  return shared;
}

}  // namespace

std::vector<OptionSpec> StorageSuite::options() const {
  OptionSpec engine = option("storage.engine", OptionKind::choice, "auto",
                             "I/O engine; auto: io_uring if the kernel allows it", "");
  engine.allowed = {"auto", "io_uring", "threads"};
  OptionSpec cache = option("storage.page-cache", OptionKind::choice, "around",
                            "around: bypass the page cache (O_DIRECT); through: use it", "");
  cache.allowed = {"around", "through"};
  OptionSpec servers =
      option("storage.servers", OptionKind::choice, "auto",
             "how the servers of shared directories are found; auto: by lfs, beegfs-ctl or the mounts, "
             "depending on the file system; paths: each directory is a server; none: they are not measured",
             "");
  servers.allowed = {"auto", "lustre", "beegfs", "paths", "none"};
  std::vector<OptionSpec> specs = {
      option("storage.paths", OptionKind::list, "",
             "absolute directories to measure; those on network file systems count as shared by all nodes, "
             "others as local; shared:DIR and local:DIR override that; without any nothing is measured",
             "DIR"),
      option("storage.space", OptionKind::bytes, "",
             "limit of bytes written in each; default a tenth of the free space", "BYTES"),
      option(
          "storage.limit", OptionKind::bytes, "",
          "limit of bytes a second of a node, of all nodes for shared directories; rates are then not judged",
          "BYTES"),
      option("storage.cache", OptionKind::bytes, "",
             "cache memory of the file servers; rates from less than twice this much data count as "
             "cached; at level extended shared-* write twice as much",
             "BYTES"),
      engine,
      cache,
      servers};
  for (OptionSpec& spec : specs)
    if (spec.name == "storage.space" || spec.name == "storage.limit") spec.range = Range{1 << 20};
  return specs;
}

std::vector<results::MetricSpec> StorageSuite::metrics() const { return storage::metrics().all(); }

FaultPoints StorageSuite::fault_points() const { return {storage::disk_targets()}; }

std::map<std::string, std::string> StorageSuite::lacks(const Config& config, bool on_gpus) {
  std::map<std::string, std::string> out;
  const auto paths = storage::paths_of(config);
  if (paths.empty()) return out;
  std::vector<std::string> directories;
  for (const storage::PathSpec& path : paths) directories.push_back(path.directory);
  silent_here_ = storage::silent_ones(directories, answer_seconds(config));
  for (const storage::PathSpec& path : paths) {
    if (path.kind != storage::PathKind::found) continue;
    if (const auto mount = is_silent(path.directory, silent_here_) ? storage::mount_of_name(path.directory)
                                                                   : storage::mount_now(path.directory);
        mount && storage::is_network(mount->type))
      out[path.network_key()] = "it is " + mount->type + " of " + mount->source;
  }
  if (const std::string why = storage::why_no_parallel_hdf5(); !why.empty()) out[storage::hdf5_name] = why;
  if (!on_gpus) return out;
  if (const std::string why = storage::why_no_cufile(); !why.empty()) out[storage::cufile_name] = why;
  return out;
}

std::vector<Case> StorageSuite::plan(const PlanInput& input) const { return storage::plan_cases(input); }

void StorageSuite::prepare(const std::vector<Case>& cases, const Config& config, Device&, Communicator& world,
                           const std::function<bool()>&) {
  const bool any = std::any_of(cases.begin(), cases.end(),
                               [&](const Case& c) { return c.suite == name() && c.not_applicable.empty(); });
  if (!any) return;
  std::vector<std::string> directories;
  for (const storage::PathSpec& path : storage::paths_of(config)) directories.push_back(path.directory);
  site_ = storage::look_at(directories, silent_here_, config.seed, world);
  told_.assign(directories.size(), false);
}

void StorageSuite::run(const Case& c, Context& context) {
  const WorkOnFiles work(context.heartbeat);
  expect_answers(c, context);
  run_answering(c, context);
}

void StorageSuite::expect_answers(const Case& c, Context& context) {
  const std::string here = host_name();
  for (const std::size_t path : paths_of_case(c, context)) {
    const std::vector<std::string>& silent = site_.silent.at(path);
    const bool mine = is_silent(here, silent);
    if (!mine && (c.stage != Stage::world || silent.empty())) continue;
    tell_silent(path, context);
    storage::leave_place(c, context);
    throw Error(ErrorKind::resource, site_.silence(path));
  }
}

/// Once, by one rank of all that get no answer.
void StorageSuite::tell_silent(std::size_t path, Context& context) {
  const std::vector<std::string>& silent = site_.silent[path];
  if (context.node.rank() != 0 || host_name() != silent.front() || told_[path]) return;
  told_[path] = true;
  context.record.launch_event("inconclusive", "missing", site_.silence(path),
                              silent.size() == 1 ? context.entities.node(context.topology.me().node) : -1);
}

void StorageSuite::run_answering(const Case& c, Context& context) {
  std::exception_ptr failure;
  std::optional<storage::Refused> refused;
  try {
    dispatch(c, context);
  } catch (const storage::Refused& e) {
    refused = e;
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    expect_same_mounts(c, context.config);
  } catch (const Error&) {  // it is the reason of all else, and no storage is accused
    refused.reset();
    failure = std::current_exception();
  }
  for (const std::string& text : storage::Folder::what_stayed())
    context.record.event("storage-left", text, context.entities.node(context.topology.me().node));
  if (c.stage == Stage::world)
    storage::tell_together(refused ? &*refused : nullptr, c.parameters.at("path").get<std::string>(),
                           context);
  else if (refused)
    refused->tell(context);
  if (failure) std::rethrow_exception(failure);
}

void StorageSuite::expect_same_mounts(const Case& c, const Config& config) const {
  const auto check = [&](std::size_t path) {
    if (path < site_.paths.size() && site_.file_systems[path])
      storage::expect_file_system(site_.paths[path], *site_.file_systems[path]);
  };
  if (c.parameters.contains("path_index")) return check(c.parameters.at("path_index").get<std::size_t>());
  for (std::size_t path = 0; path < storage::paths_of(config).size(); ++path) check(path);
}

std::function<void(pid_t)> StorageSuite::clean_up(const Config& config) const {
  if (!config.options.has("storage.paths")) return {};
  return [config](pid_t killed) {
    for (const storage::PathSpec& path : storage::paths_of(config))
      storage::remove_leftovers(path.directory, killed);
  };
}

std::function<void(const std::string&)> StorageSuite::touch() const { return storage::touch; }

void StorageSuite::dispatch(const Case& c, Context& context) {
  if (c.parameters.contains("queue_depth")) return storage::run_random(c, context, site_);
  if (c.operation == "place") return storage::run_place(c, context, site_);
  if (c.operation == "checkpoint") return storage::run_checkpoint(c, context, site_);
  if (c.operation == "feed") return storage::run_feed(c, context, site_);
  if (c.operation == "mpiio" || c.operation == "hdf5") return storage::run_mpiio(c, context, site_);
  if (c.operation == "servers") return storage::run_servers(c, context, site_);
  if (c.operation == "metadata") return storage::run_metadata(c, context, site_);
  if (c.operation.starts_with("together-")) return storage::run_together(c, context, site_);
  if (c.operation.starts_with("shared-")) return storage::run_shared(c, context, site_);
  storage::run_sequential(c, context, site_);
}

}  // namespace assay
