// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/mpiio_case.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "suite/work_on_files.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/group_case.hpp"
#include "suites/storage/hdf5_file.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/mpi_file.hpp"
#include "suites/storage/refused.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t least_turns = 3, most_turns = 200;

class MpiIoCase : GroupCase {
 public:
  MpiIoCase(const Case& c, Context& context, const Site& site)
      : GroupCase(c, context, site), collective_(c.parameters.at("transfers") == "collective") {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    make_file();
    if (!together_.any(false)) {
      turn(false);  // allocates
      const double ready = now_s();
      const DeviceMeter disks({site_.paths[path_]}, context_.node);
      context_.record.add_time(ready - begin, 0, 0);
      for (std::size_t i = 0; i < most_turns && !together_.any(false); ++i) {
        turn(true);
        context_.count_batch();
        const bool over = now_s() - ready > case_.seconds || now_s() > context_.end_s;
        if (together_.any(over && (i + 1 >= least_turns || now_s() - ready > 2 * case_.seconds))) break;
      }
      write_evidence_.device_moved = disks.moved(true);
      read_evidence_.device_moved = disks.moved(false);
    }
    report();
    close_file();
    together_.any(false);  // a file that a client has open does not survive its removal by another (NFS)
    folder_.reset();
    together_.rethrow();
  }

 private:
  void close_file() {
    const bool all = !together_.any(false);
    together_.guarded([&] {
      if (all) shared_->close();  // which a rank that failed does not take part in
    });
    shared_.reset();
    together_.guarded([&] {
      if (const int reason = own_.close(); reason != 0) throw Refused(shown_ + ": close", reason, true);
    });
    own_ = Descriptor();
  }

  /// The first rank makes it, and keeps its name until all have closed it.
  void make_file() {
    const bool maker = group_.rank() == 0;
    std::string file;
    together_.guarded([&] {
      folder_.emplace(site_.paths[path_], site_.run, site_.file_systems[path_]);
      const Layout easy = agreed_layout(context_, site_.paths[path_], folder_->space(), sharers());
      layout_ = hard_layout(easy, group_.rank(), group_.size());
      layout_.chunks = 1;
      if (!maker) return;
      (void)folder_->create("mpiio", false, false);
      file = folder_->path() + "/data-mpiio";
    });
    file = group_.broadcast_text(file, 0);
    layout_.chunk_blocks = static_cast<std::uint64_t>(group_.min(static_cast<double>(layout_.chunk_blocks)));
    if (file.empty() || together_.any(false)) {
      together_.guarded(
          [&] { throw Error(ErrorKind::resource, host_name() + ": another rank has no file for MPI-IO"); });
      return;
    }
    shown_ = file;
    fit_records();
    log_.known().words = layout_.end() / sizeof(std::uint64_t);
    together_.guarded([&] {
      own_ = open_made(file, false, true);
      memory_.emplace(layout_.chunk_bytes());
    });
    if (!together_.any(false)) open_together(file);
    context_.record.parameter("chunk_bytes", layout_.chunk_bytes());
    context_.record.parameter("file_bytes", layout_.end());
  }

  void open_together(const std::string& file) {
    together_.guarded([&] {
      if (case_.operation == "hdf5")
        shared_ = open_hdf5(group_, file, layout_, collective_);
      else
        shared_ = std::make_unique<MpiFile>(group_, file, layout_, collective_);
    });
    if (together_.any(false) && shared_) shared_->forget();
  }

  /// Sized by what the file takes without MPI-IO.
  void fit_records() {
    std::unique_ptr<Engine> engine;
    std::optional<Transfer> transfer;
    together_.guarded([&] {
      engine = open_engine(context_, sequential_depth, sharers());
      transfer.emplace(open_made(shown_, false, true), shown_, site_.file(0, path_), layout_, *engine, log_,
                       context_);
    });
    fit_together(transfer, case_.seconds / (2 * (least_turns + 1)), together_, group_);
    together_.guarded([&] { layout_.chunk_blocks = transfer->layout().chunk_blocks; });
  }

  /// All write their records, and read those of another rank.
  void turn(bool timed) {
    const auto mine = static_cast<std::uint64_t>(group_.rank());
    const auto other = static_cast<std::uint64_t>(partner());
    ++generation_;
    log_.known().generations = generation_ + 1;
    together_.guarded([&] {
      each_block(mine,
                 [&](const WordAddress& a, std::span<std::uint64_t> w) { fill(log_.known().key, a, w); });
    });
    together_.guarded([&] { shared_->look_at(mine); });
    group_.barrier();
    one(written_, write_evidence_, true, timed);
    if (together_.any(false)) return;
    together_.guarded([&] {
      // All of it: of collective transfers any node may read any part.
      ::posix_fadvise(own_.get(), 0, 0, POSIX_FADV_DONTNEED);
      std::fill(memory_->words().begin(), memory_->words().end(), 0x5a5a5a5a5a5a5a5aULL);
      shared_->look_at(other);
    });
    group_.barrier();
    together_.guarded([&] {
      // Of collective reads an aggregator on another node may read the records of this rank.
      const double share =
          collective_ ? resident_share(own_.get(), 0, shared_->begins_at() + layout_.end()).value_or(1.0)
                      : resident_blocks(own_.get(), of_rank(other), 0, 1, shared_->begins_at());
      read_evidence_.resident = std::max(read_evidence_.resident, share);
    });
    group_.barrier();  // all have looked before any reads
    one(read_, read_evidence_, false, timed);
    if (!timed) return;
    const double begin = now_s();
    together_.guarded([&] { verify(other); });
    context_.record.add_time(0, 0, now_s() - begin);
  }

  /// A rank that failed takes part in no collective call any more: all leave after the turn in which one did.
  void one(SampleSeries& series, Evidence& evidence, bool write, bool timed) {
    if (together_.any(false)) return;
    const StorageMeter meter(write, site_.paths[path_]);
    const double begin = now_s();
    together_.guarded([&] { transfer(write); });
    together_.guarded([&] { context_.apply_injected_delay(begin, 1, !timed); });
    const double end = now_s();
    if (!timed) return;
    series.start_s.push_back(begin);
    series.seconds.push_back(end - begin);
    evidence.moved += meter.moved();
    evidence.asked += static_cast<double>(layout_.chunk_bytes());
    context_.record.add_time(0, end - begin, 0);
  }

  void transfer(bool write) {
    try {
      shared_->transfer(write, memory_->bytes());
      files_answered();
    } catch (const Refused& e) {
      if (e.reason() == 0) ask_for_reason(e, write);
      throw;
    }
  }

  /// Not every library tells why it failed: the system says it to the same bytes.
  void ask_for_reason(const Refused& e, bool write) {
    const int rank = write ? group_.rank() : partner();
    each_block(static_cast<std::uint64_t>(rank),
               [&](const WordAddress& address, std::span<std::uint64_t> data) {
                 const std::uint64_t at = shared_->begins_at() + address.word * sizeof(std::uint64_t);
                 const Request block{own_.get(),
                                     at,
                                     reinterpret_cast<std::byte*>(data.data()),
                                     static_cast<std::uint32_t>(data.size_bytes()),
                                     0,
                                     0};
                 const std::int64_t moved = move_rest(write, block, 0);
                 if (moved < 0) throw e.because(static_cast<int>(-moved));
                 if (moved < block.bytes)
                   throw e.because(fmt::format("{} at offset {}: {} of {} bytes", write ? "write" : "read",
                                               at, moved, block.bytes));
               });
    if (write && ::fsync(own_.get()) != 0) throw e.because(errno);
    throw e.because("the system itself moves the same bytes");
  }

  Layout of_rank(std::uint64_t rank) const {
    Layout of = layout_;
    of.rank = rank;
    return of;
  }

  template <class F>
  void each_block(std::uint64_t rank, F&& f) {
    const Layout of = of_rank(rank);
    const std::uint64_t words = of.block_bytes / sizeof(std::uint64_t);
    for (std::uint64_t b = 0; b < of.chunk_blocks; ++b)
      f(WordAddress{site_.file(0, path_), generation_, of.offset(0, b) / sizeof(std::uint64_t)},
        memory_->words().subspan(b * words, words));
  }

  void verify(std::uint64_t rank) {
    bool first = true;
    each_block(rank, [&](const WordAddress& address, std::span<std::uint64_t> data) {
      Block block{shown_, address, data, data.size(), [this](std::uint64_t offset) {
                    std::uint64_t word = 0;
                    const auto at = static_cast<off_t>(shared_->begins_at() + offset);
                    return ::pread(own_.get(), &word, sizeof word, at) == sizeof word ? word : 0;
                  }};
      if (first) corrupt(block, log_.known(), context_);
      first = false;
      log_.check(block);
    });
    read_evidence_.verified += static_cast<double>(layout_.chunk_bytes());
  }

  void report() {
    read_evidence_.take(log_);
    for (Evidence* evidence : {&write_evidence_, &read_evidence_}) {
      evidence->compare_with_caches(case_, static_cast<double>(layout_.chunk_bytes()), group_);
      // Some ranks collect what others write and read.
      if (collective_) evidence->share_moved(group_, context_.node.rank() == 0);
    }
    const NodeSeries written = gather_node(written_, layout_.chunk_bytes(), write_evidence_, context_);
    const NodeSeries read = gather_node(read_, layout_.chunk_bytes(), read_evidence_, context_);
    report_both(written, "write", read, "read", site_.paths[path_], case_, context_);
  }

  bool collective_;
  std::optional<Folder> folder_;
  Layout layout_;
  std::string shown_;
  std::unique_ptr<SharedFile> shared_;
  Descriptor own_;
  std::optional<Aligned> memory_;
  std::uint64_t generation_ = 0;
  SampleSeries written_, read_;
  Evidence write_evidence_, read_evidence_;
};

}  // namespace

void run_mpiio(const Case& c, Context& context, const Site& site) { MpiIoCase(c, context, site).run(); }

}  // namespace assay::storage
