// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/storage_plan.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "suites/storage/training_step.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
/// Bytes a second that a node writes to a shared file system, for estimates of time.
constexpr double usual_node_rate = 1e9;
constexpr std::uint64_t record_bytes = 47008;  ///< of IO500's "hard" cases

struct LevelPlan {
  std::uint64_t sample_blocks;  ///< of a node
  std::uint64_t file_bytes;     ///< of a rank
  double seconds;               ///< of a sequential case, all paths together
  std::vector<int> depths;      ///< of random access
  std::uint64_t files;          ///< of a rank and round, in metadata
  double random_s;              ///< of each of these, all paths together
  std::uint64_t state_bytes;    ///< of a rank, in a checkpoint; 0: none
  double checkpoint_s, feed_s;  ///< all paths together
  int most_servers;             ///< of a directory, in the matrix of clients and servers
};

LevelPlan level_plan(Level level) {
  switch (level) {
    case Level::smoke: return {32, 64 * mib, 0.5, {}, 0, 0, 0, 0, 0, 0};
    case Level::quick: return {128, 256 * mib, 2, {1, 16}, 50, 0.5, 64 * mib, 2, 1, 32};
    case Level::standard: return {128, 1024 * mib, 6, {1, 16, 128}, 200, 1.1, 256 * mib, 3.5, 1.5, 64};
    case Level::extended:
    case Level::soak: break;
  }
  return {256, 8192 * mib, 60, {1, 16, 128}, 1000, 20, 1024 * mib, 60, 30, 4096};
}

/// What happens outside of the clock: the file is made, and read back.
double overhead_seconds(double seconds) { return 0.1 + seconds; }

Case nowhere() {
  Case c;
  c.suite = "storage";
  c.operation = "write";
  c.name = "local-write-0";
  c.title = "storage";
  c.not_applicable = "no directory given to measure in (--storage.paths)";
  return c;
}

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input), paths_(paths_of(input.config)), level_(level_plan(input.config.level)) {
    local_ = local_paths(input.config, input.topology.lacks);
    together_ = local_.size() > 1 && input.config.level >= Level::quick;
  }

  std::vector<Case> cases() {
    if (paths_.empty()) return {nowhere()};
    for (path_ = 0; path_ < paths_.size(); ++path_) {
      add_place("before", Stage::inventory);
      add_place("after", Stage::burn);
    }
    for (path_ = 0; path_ < paths_.size(); ++path_)
      for (const bool write : {true, false}) {
        if (!shared()) {
          add_sequential(write);
        } else {
          add_shared("easy", write);
          add_shared("hard", write);
        }
      }
    if (together_)
      for (const bool write : {true, false}) add_together(write);
    for (path_ = 0; path_ < paths_.size(); ++path_)
      for (const int depth : level_.depths)
        for (const bool write : {true, false})
          if (!shared()) add_random(write, depth);
    for (path_ = 0; path_ < paths_.size() && level_.files > 0; ++path_) {
      add_metadata("own", "a directory of each rank");
      if (shared()) add_metadata("one", "one directory");
    }
    for (path_ = 0; path_ < paths_.size() && level_.state_bytes > 0; ++path_)
      if (shared() && asks_for_servers()) add_servers();
    for (path_ = 0; path_ < paths_.size() && level_.state_bytes > 0; ++path_) {
      add_training("checkpoint", "checkpoint of a model's state", level_.checkpoint_s);
      cases_.back().parameters["most_bytes"] = level_.state_bytes;
      for (const char* transfers : {"collective", "independent"}) add_through("mpiio", "MPI-IO", transfers);
      for (const char* transfers : {"collective", "independent"})
        add_through("hdf5", "parallel HDF5", transfers);
      add_training("feed", "random records of 4 KiB to 1 MiB into training steps", level_.feed_s);
    }
    for (path_ = 0; path_ < paths_.size() && level_.state_bytes > 0; ++path_)
      for (const bool write : {true, false}) add_gds(write);
    return std::move(cases_);
  }

 private:
  /// What all cases of a directory have alike; directories share the seconds.
  Case in_path(double seconds) const {
    Case c;
    c.suite = "storage";
    c.stage = shared() ? Stage::world : Stage::node_local;
    c.addresses = true;
    c.entity_kind = "node";
    c.entities = static_cast<std::int64_t>(input_.topology.nodes.size());
    c.seconds = seconds / static_cast<double>(paths_.size());
    c.min_seconds = std::min(c.seconds, 0.2);
    c.overhead_seconds = overhead_seconds(c.seconds);
    c.parameters = {{"path", paths_[path_].directory}, {"path_index", path_}};
    return c;
  }

  bool shared() const { return paths_[path_].shared(input_.topology.lacks); }

  void add(Case& c, const std::string& name, const std::string& title) {
    c.name = name + "-" + std::to_string(path_);
    c.title = title + ", " + paths_[path_].directory;
    cases_.push_back(std::move(c));
  }

  void add_place(const std::string& when, Stage stage) {
    Case c = in_path(0);
    c.operation = "place";
    c.stage = stage;
    c.addresses = false;
    c.seconds = c.min_seconds = c.overhead_seconds = 0.01;
    c.parameters["when"] = when;
    add(c, "place-" + when, "mount and disks " + when + " the other cases");
  }

  std::string lacking(const std::string& library) const {
    const auto& lacks = input_.topology.lacks;
    const auto it = lacks.find(library);
    return it == lacks.end() ? "" : it->second;
  }

  /// The local paths, one after the other and together, share the seconds that each has where it is alone.
  double sequential_seconds() const {
    const auto count = static_cast<double>(local_.size());
    return together_ ? level_.seconds * count / (count + 1) : level_.seconds;
  }

  void add_sequential(bool write) {
    Case c = in_path(sequential_seconds());
    c.operation = write ? "write" : "read";
    c.required = true;
    c.parameters["block_bytes"] = mib;
    add(c, write ? "local-write" : "local-read",
        write ? "sequential write, 1 MiB blocks" : "sequential read, 1 MiB blocks");
  }

  void add_together(bool write) {
    path_ = local_.front();
    Case c = in_path(sequential_seconds());
    std::string all;
    for (const std::size_t p : local_) all += (all.empty() ? "" : ",") + paths_[p].directory;
    c.stage = Stage::groups;  // after each of them alone
    c.operation = write ? "together-write" : "together-read";
    c.parameters = {{"path", all}, {"block_bytes", mib}};
    c.name = write ? "local-write-together" : "local-read-together";
    c.title = std::string(write ? "sequential write, " : "sequential read, ") +
              std::to_string(local_.size()) + " local paths at once";
    cases_.push_back(std::move(c));
  }

  /// Its buffers are at the start of the arena.
  void add_gds(bool write) {
    Case c = in_path(level_.feed_s / 2);
    c.operation = write ? "gds-write" : "gds-read";
    c.parameters["block_bytes"] = mib;
    const std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
    c.bytes =
        std::min(sequential_layout(input_.config.level, any, input_.topology.max_local_size()).chunk_bytes(),
                 std::max(input_.memory_per_rank_bytes, mib));
    tell_server_cache(c);
    c.not_applicable = input_.topology.measures_gpus() ? lacking(cufile_name) : "no GPU is measured";
    add(c, c.operation,
        write ? "sequential write from GPUs (cuFile), 1 MiB blocks"
              : "sequential read into GPUs (cuFile), 1 MiB blocks");
  }

  void add_random(bool write, int depth) {
    Case c = in_path(level_.random_s);
    c.operation = write ? "random-write" : "random-read";
    c.parameters["block_bytes"] = 4096;
    c.parameters["queue_depth"] = depth;
    add(c, "local-" + c.operation + "-q" + std::to_string(depth),
        (write ? "random write, 4 KiB, queue depth " : "random read, 4 KiB, queue depth ") +
            std::to_string(depth));
  }

  /// Two cases where a local path has one: each has half of the time.
  void add_shared(const std::string& kind, bool write) {
    Case c = in_path(level_.seconds / 2);
    c.operation = "shared-" + kind + (write ? "-write" : "-read");
    c.required = true;
    c.parameters["block_bytes"] = kind == "easy" ? mib : record_bytes;
    if (tell_server_cache(c) && input_.config.level >= Level::extended)
      c.overhead_seconds += c.parameters["server_cache_twice"].get<double>() /
                            (usual_node_rate * static_cast<double>(c.entities));
    add(c, c.operation,
        (write ? "write, " : "read of another node's, ") +
            std::string(kind == "easy" ? "a file per rank" : "one file, 47008-byte records"));
  }

  /// What servers cache is not seen by a client: files of twice the size are not kept by them. False where
  /// they are told of none.
  bool tell_server_cache(Case& c) const {
    if (!shared() || !input_.config.options.has("storage.cache")) return false;
    c.parameters["server_cache_twice"] = 2 * input_.config.options.bytes("storage.cache");
    return true;
  }

  void add_metadata(const std::string& directory, const std::string& words) {
    Case c = in_path(level_.random_s);
    c.operation = "metadata";
    c.addresses = false;
    c.parameters["directory"] = directory;
    c.parameters["files"] = level_.files;
    add(c, "metadata-" + directory, "small files, " + words);
  }

  /// Directories that are servers have one case together.
  bool asks_for_servers() const {
    const std::string how = input_.config.options.text("storage.servers");
    return how != "none" && (how != "paths" || std::none_of(cases_.begin(), cases_.end(), [](const Case& c) {
                               return c.operation == "servers";
                             }));
  }

  /// How many servers there are shows when it runs: `entities` is a guess.
  void add_servers() {
    Case c = in_path(level_.checkpoint_s / 2);
    c.operation = "servers";
    c.stage = Stage::world;
    c.entity_kind = "link";
    c.entities = 16 * static_cast<std::int64_t>(input_.topology.nodes.size());
    c.links = paths_[path_].directory;
    c.parameters["block_bytes"] = mib;
    c.parameters["most_servers"] = level_.most_servers;
    tell_server_cache(c);
    add(c, "servers", "each node with each server");
  }

  void add_through(const std::string& operation, const std::string& library, const std::string& transfers) {
    Case c = in_path(level_.feed_s / 2);
    c.operation = operation;
    c.parameters["block_bytes"] = record_bytes;
    c.parameters["transfers"] = transfers;
    tell_server_cache(c);
    if (input_.config.options.has("storage.limit"))
      c.not_applicable = library + " cannot be held to --storage.limit";
    else if (operation == "hdf5")
      c.not_applicable = lacking(hdf5_name);
    add(c, operation + "-" + transfers, "one file through " + library + ", 47008-byte records, " + transfers);
  }

  /// Training steps run on the device of each rank.
  void add_training(const std::string& operation, const std::string& words, double seconds) {
    Case c = in_path(seconds);
    c.operation = operation;
    c.multiplies = true;
    c.bytes = TrainingStep::bytes();
    c.parameters["block_bytes"] = mib;
    tell_server_cache(c);
    add(c, c.operation, words);
  }

  const PlanInput& input_;
  std::vector<PathSpec> paths_;
  LevelPlan level_;
  std::vector<std::size_t> local_;  ///< paths that are not shared
  bool together_ = false;           ///< these are also measured at once
  std::size_t path_ = 0;
  std::vector<Case> cases_;
};

}  // namespace

std::vector<PathSpec> paths_of(const Config& config) {
  std::vector<PathSpec> paths;
  if (!config.options.has("storage.paths")) return paths;
  for (std::string path : config.options.list("storage.paths")) {
    const PathKind kind = path.starts_with("shared:")  ? PathKind::shared
                          : path.starts_with("local:") ? PathKind::local
                                                       : PathKind::found;
    if (kind != PathKind::found) path.erase(0, path.find(':') + 1);
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    if (path.empty() || path.front() != '/')
      throw_usage("--storage.paths: '" + path + "' is not an absolute path");
    if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      throw_usage("--storage.paths: a path holds control characters");
    if (std::any_of(paths.begin(), paths.end(), [&](const PathSpec& p) { return p.directory == path; }))
      throw_usage("--storage.paths: '" + path + "' is named twice");
    paths.push_back({std::move(path), kind});
  }
  return paths;
}

std::vector<std::size_t> local_paths(const Config& config, const std::map<std::string, std::string>& lacks) {
  std::vector<std::size_t> local;
  const auto paths = paths_of(config);
  for (std::size_t p = 0; p < paths.size(); ++p)
    if (!paths[p].shared(lacks)) local.push_back(p);
  return local;
}

std::vector<Case> plan_cases(const PlanInput& input) { return Planner(input).cases(); }

bool on_gpus(const Case& c) { return c.operation.starts_with("gds-"); }

Layout hard_layout(const Layout& easy, int rank, int ranks) {
  Layout layout = easy;
  layout.block_bytes = record_bytes;
  layout.chunk_blocks = std::max<std::uint64_t>(1, easy.chunk_bytes() / record_bytes);
  layout.rank = static_cast<std::uint64_t>(rank);
  layout.ranks = static_cast<std::uint64_t>(ranks);
  return layout;
}

Layout sequential_layout(Level level, std::uint64_t space, int ranks, std::uint64_t least_bytes) {
  // At the end of a sample fewer and fewer requests are in flight: it is many times the depth of all ranks.
  const LevelPlan plan = level_plan(level);
  Layout layout{
      mib, std::clamp<std::uint64_t>(plan.sample_blocks / static_cast<std::uint64_t>(ranks), 16, 128), 0};
  const std::uint64_t chunk = layout.chunk_bytes(), least = (least_bytes + chunk - 1) / chunk * chunk;
  const std::uint64_t bytes = std::min(space, std::max(plan.file_bytes, least));
  layout.chunk_blocks = std::min(layout.chunk_blocks, bytes / mib);
  if (layout.chunk_blocks > 0) layout.chunks = bytes / layout.chunk_bytes();
  return layout;
}

}  // namespace assay::storage
