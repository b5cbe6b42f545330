// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/shared_case.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "suites/storage/group_case.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/slow_clients.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {
namespace {

class SharedCase : GroupCase {
 public:
  SharedCase(const Case& c, Context& context, const Site& site)
      : GroupCase(c, context, site),
        write_(c.operation.ends_with("write")),
        hard_(c.operation.starts_with("shared-hard")) {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    make_files();
    const double seconds = 0.3 * case_.seconds;
    std::optional<double> whole_s;
    if (least_bytes() > 0) whole_s = std::max(seconds, context_.end_s - now_s());
    lay_out_together(transfer_, seconds, together_, context_.world, whole_s);
    evidence_.compare_with_caches(
        case_, transfer_ ? static_cast<double>(transfer_->layout().file_bytes()) : 0, context_.world);
    if (!write_) exchange();
    if (!together_.any(false))
      series_ =
          sample_transfer(*transfer_, write_, case_, now_s() - begin, log_, together_, context_, evidence_);
    CaseRecord::Row* row = report_node(series_, transfer_ ? transfer_->chunk_bytes() : 0, evidence_,
                                       site_.paths[path_], case_, context_);
    report_all(row);
    tell_slow_client(row, site_.paths[path_], case_, context_);
    close_files();
    together_.rethrow();
  }

 private:
  /// Of a rank's file, which is laid out in full then: of all together twice the memory of servers that
  /// --storage.cache names. Records of "hard" are a little less than its chunks.
  std::uint64_t least_bytes() const {
    const auto twice = case_.parameters.find("server_cache_twice");
    if (context_.config.level < Level::extended || twice == case_.parameters.end()) return 0;
    return twice->get<std::uint64_t>() / 100 * 102 / static_cast<std::uint64_t>(context_.world.size());
  }

  bool makes() const { return !hard_ || context_.world.rank() == 0; }
  std::uint64_t number(int rank) const { return site_.file(hard_ ? 0 : rank, path_); }

  /// "easy": each rank makes its own. "hard": rank 0 makes the only one, and the others open it.
  void make_files() {
    Layout layout;
    const std::string name = fmt::format("{:06}", context_.world.rank());
    Descriptor fd;
    together_.guarded([&] {
      engine_ = open_engine(context_, sequential_depth, context_.world.size());
      folder_.emplace(site_.paths[path_], site_.run, site_.file_systems[path_]);
      layout =
          agreed_layout(context_, site_.paths[path_], folder_->space(), context_.world.size(), least_bytes());
      if (hard_) layout = hard_layout(layout, context_.world.rank(), context_.world.size());
      if (makes()) {
        if (!hard_)
          fd = create_around(*folder_, name, false, layout.block_bytes, site_.paths[path_], context_);
        direct_ = static_cast<bool>(fd);
        if (!fd) fd = folder_->create(name, false, false);
        own_ = folder_->path() + "/data-" + name;
      }
      context_.record.parameter("chunk_bytes", layout.chunk_bytes());
      context_.record.parameter("file_bytes", layout.end());
      context_.record.parameter("direct", direct_ ? 1 : 0);
    });
    if (hard_) own_ = context_.world.broadcast_text(own_, 0);
    together_.any(false);  // no rank goes on before all have looked at the space, and the file is there
    together_.guarded([&] {
      if (own_.empty()) throw Error(ErrorKind::resource, host_name() + ": rank 0 has made no file");
      if (!makes()) fd = open_made(own_, false, true);
      transfer_.emplace(std::move(fd), own_, number(context_.world.rank()), layout, *engine_, log_, context_);
    });
    together_.any(false);  // all are open
  }

  /// Names go when no rank has a file open any more. A file that one client has open does not survive its
  /// removal by another (NFS: ESTALE).
  void close_files() {
    transfer_.reset();
    together_.any(false);
    folder_.reset();
  }

  /// Each rank goes on with the file (or the records) that a rank of the next node has laid out. Files are
  /// opened after they were synced: a network file system guarantees no more.
  void exchange() {
    Communicator& world = context_.world;
    Json mine;
    if (transfer_)
      mine = {{"path", own_},
              {"chunks", transfer_->layout().chunks},
              {"bytes", transfer_->layout().chunk_bytes()}};
    const auto all = world.all_gather_text(mine.dump());
    const int from = partner();
    together_.guarded([&] {
      const Json other = Json::parse(all[static_cast<std::size_t>(from)]);
      if (other.is_null())
        throw Error(ErrorKind::resource, host_name() + ": the rank to read from has written nothing");
      Layout layout = transfer_->layout();
      layout.chunks = other["chunks"].get<std::uint64_t>();
      if (hard_) layout.rank = static_cast<std::uint64_t>(from);
      if (layout.chunk_bytes() != other["bytes"].get<std::uint64_t>())
        throw Error(ErrorKind::resource, host_name() + ": the rank to read from has chunks of another size");
      const std::string path = other["path"].get<std::string>();
      Descriptor fd = open_made(path, direct_, false);
      if (hard_) transfer_->drop_cache();  // a hint; what it did the counters tell
      transfer_->adopt(std::move(fd), path, number(from), layout);
    });
    together_.any(false);  // all are open
  }

  /// What all nodes moved together: the sum over the longest time of each sample, which all ranks begin at
  /// once.
  void report_all(CaseRecord::Row* row) {
    Communicator& world = context_.world;
    const double bytes = world.sum(transfer_ ? static_cast<double>(transfer_->chunk_bytes()) : 0);
    const auto samples = static_cast<std::size_t>(-world.max(-static_cast<double>(series_.seconds.size())));
    for (std::size_t s = 0; s < samples; ++s) {
      const double longest = world.max(series_.seconds[s]);
      if (row != nullptr) row->values["bandwidth_all"].push_back(bytes / longest);
    }
  }

  bool write_, hard_, direct_ = false;
  std::string own_;
  std::optional<Folder> folder_;
  std::unique_ptr<Engine> engine_;
  std::optional<Transfer> transfer_;
  SampleSeries series_;
  Evidence evidence_;
};

}  // namespace

void run_shared(const Case& c, Context& context, const Site& site) { SharedCase(c, context, site).run(); }

}  // namespace assay::storage
