// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "suites/storage/cufile.hpp"
#include "suites/storage/site.hpp"
#include "suites/storage/transfer.hpp"

namespace assay::storage {

/// What a rank measures with in a local case: a file without a name in a path of its node, and an engine.
struct LocalFile {
  std::string where;  ///< the path, as given
  std::optional<Folder> folder;
  std::unique_ptr<Engine> engine;
  std::optional<Transfer> transfer;
  bool direct = false;
  std::optional<GpuPath> gpu_path;  ///< of cases that move between files and GPUs

  /// Throws Error(resource) where the path has too little space, or cannot be written to. `sharers` ranks
  /// take part in a node, each with as many `files` at once. What was found becomes parameters of the case.
  void open(const Case& c, Context& context, const Site& site, DamageLog& log, int depth, int sharers,
            int files = 1);
};

/// A new file, opened with O_DIRECT and tried with a request of `bytes`, or of 64 KiB where that is less:
/// some file systems refuse only the transfer. Empty where it is refused, and `why` says that.
Descriptor create_direct(Folder& folder, const std::string& name, bool unlinked, std::size_t bytes,
                         std::string& why);
/// The same, and an event of the node with the reason. Empty also where --storage.page-cache is `through`.
Descriptor create_around(Folder& folder, const std::string& name, bool unlinked, std::size_t bytes,
                         const std::string& where, Context& context);

/// --storage.space; 0 where it is not given.
std::uint64_t asked_space(const Context& context);
/// Bytes a second of each of `sharers` ranks by --storage.limit, where it is given.
std::optional<double> limit_of_rank(const Context& context, int sharers);
/// Bytes that each of `sharers` ranks may write below `where`. Throws Error(resource) where it is nothing.
std::uint64_t allowed_bytes(const Context& context, const std::string& where, const Space& space,
                            int sharers);

/// Files that each of `sharers` ranks may have there at a time. Throws Error(resource) where it is none.
std::uint64_t allowed_files(const std::string& where, const Space& inodes, int sharers);

/// The layout of this level in the space that is there for each of `sharers` ranks. Throws Error(resource)
/// where it is too little. `least_bytes` of a file, where the level has less.
Layout agreed_layout(const Context& context, const std::string& where, const Space& space, int sharers,
                     std::uint64_t least_bytes = 0);

/// The engine that the options ask for, within this rank's share of --storage.limit; what it is becomes
/// parameters of the case.
std::unique_ptr<Engine> open_engine(Context& context, int depth, int sharers);

/// Declares the metrics of the case's operation, and tests the checker.
void begin_case(const Case& c, Context& context, int entity);

}  // namespace assay::storage
