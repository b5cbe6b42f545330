// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/local_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/system.hpp"
#include "base/units.hpp"
#include "suites/storage/storage_metrics.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {

namespace {

[[noreturn]] void too_little(const std::string& where, const Space& space, std::uint64_t asked) {
  if (asked != 0 && asked <= allowance(space, 0))
    throw Error(ErrorKind::resource, fmt::format("{}: {}: --storage.space: {} are too little to measure with",
                                                 host_name(), where, format_bytes(asked)));
  throw Error(ErrorKind::resource,
              fmt::format("{}: {}: {} of {} are free, {} must stay so: too little to measure with",
                          host_name(), where, format_bytes(space.available), format_bytes(space.total),
                          format_bytes(reserve_bytes(space.total))));
}

}  // namespace

Descriptor create_direct(Folder& folder, const std::string& name, bool unlinked, std::size_t bytes,
                         std::string& why) {
  constexpr std::size_t most = 64 << 10;
  Descriptor fd = folder.create(name, true, unlinked);
  if (!fd) {
    why = std::string("open: ") + std::strerror(errno);
    return fd;
  }
  const Aligned memory(std::min(bytes, most));
  const std::span<std::byte> data = memory.bytes();
  const auto at = static_cast<off_t>(data.size());
  const bool written = ::pwrite(fd.get(), data.data(), data.size(), at) >= 0;
  const bool moved = written && ::pread(fd.get(), data.data(), data.size(), at) >= 0;
  const int refused = moved ? 0 : errno;
  (void)!::ftruncate(fd.get(), 0);
  // Other errors are those of the transfer that is measured.
  if (refused != EINVAL && refused != EOPNOTSUPP) return fd;
  why = fmt::format("{} of {} bytes: {}", written ? "read" : "write", data.size(), std::strerror(refused));
  if (!unlinked) folder.remove(name);
  return Descriptor();
}

Descriptor create_around(Folder& folder, const std::string& name, bool unlinked, std::size_t bytes,
                         const std::string& where, Context& context) {
  if (context.config.options.text("storage.page-cache") != "around") return Descriptor();
  std::string why;
  Descriptor fd = create_direct(folder, name, unlinked, bytes, why);
  if (!fd && context.node.rank() == 0)
    context.record.event(
        "storage-buffered",
        fmt::format("{}: O_DIRECT is refused ({}): files go through the page cache", where, why),
        context.entities.node(context.topology.me().node));
  return fd;
}

std::uint64_t asked_space(const Context& context) {
  const OptionValues& options = context.config.options;
  return options.has("storage.space") ? options.bytes("storage.space") : 0;
}

std::optional<double> limit_of_rank(const Context& context, int sharers) {
  const OptionValues& options = context.config.options;
  if (!options.has("storage.limit")) return std::nullopt;
  return static_cast<double>(options.bytes("storage.limit")) / sharers;
}

std::uint64_t allowed_bytes(const Context& context, const std::string& where, const Space& space,
                            int sharers) {
  const std::uint64_t bytes = allowance(space, asked_space(context)) / static_cast<std::uint64_t>(sharers);
  if (bytes == 0) too_little(where, space, asked_space(context));
  return bytes;
}

std::uint64_t allowed_files(const std::string& where, const Space& inodes, int sharers) {
  const std::uint64_t files = file_allowance(inodes) / static_cast<std::uint64_t>(sharers);
  if (files > 0) return files;
  throw Error(ErrorKind::resource,
              fmt::format("{}: {}: {} of {} inodes are free, {} must stay so: too few for {} rank{}",
                          host_name(), where, inodes.available, inodes.total, reserve_inodes(inodes.total),
                          sharers, sharers == 1 ? "" : "s"));
}

Layout agreed_layout(const Context& context, const std::string& where, const Space& space, int sharers,
                     std::uint64_t least_bytes) {
  const Layout layout = sequential_layout(context.config.level, allowed_bytes(context, where, space, sharers),
                                          context.topology.max_local_size(), least_bytes);
  if (layout.chunks == 0) too_little(where, space, asked_space(context));
  return layout;
}

namespace {

/// Within this rank's share of --storage.limit; what it is becomes parameters of the case.
std::unique_ptr<Engine> within_limit(std::unique_ptr<Engine> engine, Context& context, int sharers) {
  context.record.parameter("engine", engine->name());
  context.record.parameter("depth", engine->depth());
  const auto limit = limit_of_rank(context, sharers);
  if (!limit) return engine;
  context.record.parameter("limit_bytes_per_s",
                           static_cast<double>(context.config.options.bytes("storage.limit")));
  return make_limited_engine(std::move(engine), *limit);
}

}  // namespace

std::unique_ptr<Engine> open_engine(Context& context, int depth, int sharers) {
  std::string why;
  auto engine = make_engine(context.config.options.text("storage.engine"), depth, why);
  if (!why.empty()) context.record.parameter("engine_why", why);
  return within_limit(std::move(engine), context, sharers);
}

void LocalFile::open(const Case& c, Context& context, const Site& site, DamageLog& log, int depth,
                     int sharers, int files) {
  const auto path = c.parameters.at("path_index").get<std::size_t>();
  where = site.paths[path];
  if (site.shared[path]) sharers *= static_cast<int>(context.topology.nodes.size());
  if (!on_gpus(c)) engine = open_engine(context, depth, sharers * files);
  folder.emplace(where, site.run, site.file_systems[path]);
  Layout layout = agreed_layout(context, where, folder->space(), sharers);
  layout.split(files);
  if (on_gpus(c)) layout.chunk_blocks = std::min(layout.chunk_blocks, c.bytes / layout.block_bytes);
  const std::string name = fmt::format("{:06}", context.world.rank());
  // Records that feed training have 4 KiB at least.
  const auto request = c.operation == "feed" ? 4096 : c.parameters.at("block_bytes").get<std::size_t>();
  Descriptor fd = create_around(*folder, name, true, request, where, context);
  direct = static_cast<bool>(fd);
  if (!fd) fd = folder->create(name, false, true);
  if (on_gpus(c))
    engine = within_limit(make_cufile_engine(context.device, depth, fd.get(), gpu_path.emplace()), context,
                          sharers);
  transfer.emplace(std::move(fd), folder->path() + "/data-" + name, site.file(context.world.rank(), path),
                   layout, *engine, log, context);
  folder->vanish();
  CaseRecord& record = context.record;
  if (on_gpus(c)) record.parameter("engine", engine->name());  // knows now whether cuFile took its memory
  record.parameter("chunk_bytes", layout.chunk_bytes());
  record.parameter("file_bytes", layout.file_bytes());
  record.parameter("direct", direct ? 1 : 0);
  record.parameter("path_kind", site.shared[path] ? "shared" : "local");
  if (site.removed[path] > 0)
    record.event(
        "storage-cleaned",
        fmt::format("{}: removed {} directories of runs that were killed", where, site.removed[path]),
        context.entities.node(context.topology.me().node));
}

void begin_case(const Case& c, Context& context, int entity) {
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == c.operation) {
      auto& declared = context.record.declare(m);
      // A rate that was held down says nothing of the storage.
      if (context.config.options.has("storage.limit") && declared.name != "errors")
        declared.role = results::Role::covariate;
    }
  context.record.selftest(self_test(context.random.child("self-test"), entity));
}

}  // namespace assay::storage
