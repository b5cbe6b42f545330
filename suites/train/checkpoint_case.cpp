// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/system.hpp"
#include "measure/cold.hpp"
#include "suite/partner.hpp"
#include "suite/work_on_files.hpp"
#include "suites/train/checkpoint.hpp"
#include "suites/train/checkpoint_folder.hpp"
#include "suites/train/train_metrics.hpp"
#include "suites/train/train_work.hpp"
#include "transport/agree.hpp"

namespace assay::train {
namespace {

namespace fs = std::filesystem;

/// What `work` on files throws. Damaged files, too, are errors of a resource: this run wrote them.
template <class Work>
std::optional<Error> file_error_of(const Work& work) {
  try {
    work();
  } catch (const Error& e) {
    return Error(ErrorKind::resource, e.what());
  } catch (const fs::filesystem_error& e) {
    return Error(ErrorKind::resource,
                 fmt::format("checkpoint: {}: {}", e.path1().string(), e.code().message()));
  }
  return {};
}

/// Trains, writes checkpoints, reads them back by other ranks, and starts again from the last but one: the
/// steps after it must have the same bits the second time.
class CheckpointCase {
 public:
  CheckpointCase(const Case& c, Context& context)
      : context_(context),
        work_(work_from(c, context.device)),
        every_(c.parameters.at("every").get<int>()),
        replica_(work_, context),
        reducer_(replicas_of(context), replica_.gpt(), progress_of(context)) {
    const auto ranks = static_cast<std::size_t>(context.world.size());
    const std::size_t state = 3 * replica_.gpt().table().size() * sizeof(float);
    shard_bytes_ = (state / ranks + 63) / 64 * 64 + 64;
    staging_.resize(shard_bytes_ * ranks);
    state_bytes_ = state;
  }

  void run() {
    declare();
    const fs::path root = context_.config.options.text("train.scratch");
    const bool keep = context_.config.options.flag("train.keep");
    folder_ = root / context_.world.broadcast_text(folder_name(context_.config.seed, keep), 0);
    try {
      write_and_restart();
    } catch (...) {
      clean();
      throw;
    }
    clean();
    context_.world.barrier();
  }

 private:
  void declare() {
    for (const results::MetricSpec& m : metrics().all())
      if (m.operation == "checkpoint") context_.record.declare(m);
    context_.record.declare_integers("digest_parameter", {"sample"}, {0});
  }

  bool first() const { return context_.world.rank() == 0; }
  fs::path checkpoint(int step) const { return folder_ / fmt::format("step-{:06}", step); }

  /// A directory that is missing is a typing error, or a file system that is not mounted: made anew, its
  /// checkpoints would lie on another one.
  void make_folder() const {
    const fs::path root = folder_.parent_path();
    std::error_code none;
    if (!fs::is_directory(root, none))
      throw Error(ErrorKind::resource,
                  fmt::format("{}: --train.scratch: '{}' is no directory", host_name(), root.string()));
    remove_leftovers(root);
    // Two stay while the third is written, see remove_older().
    require_space(root,
                  3 * (shard_bytes_ + sizeof(ShardHeader)) * static_cast<std::size_t>(context_.world.size()));
    fs::create_directory(folder_);
  }

  void write_and_restart() {
    agree_error(context_.world, file_error_of([&] {
                  const WorkOnFiles work(context_.heartbeat);
                  if (first()) make_folder();
                }));
    auto& row = context_.record.add_row(context_.device_entity);
    std::vector<std::uint64_t> after;
    for (int step = 0; step < work_.steps; ++step) {
      const double begin = now_s();
      train(step);
      trained_s_ += now_s() - begin;
      after.push_back(replica_.gpt().parameter_digest());
      if ((step + 1) % every_ == 0) save(step + 1, row);
    }
    name_rates(row);
    restart(after, row);
    context_.record.parameter("state_bytes", state_bytes_);
  }

  void train(int step) {
    const auto ranks = static_cast<std::uint64_t>(context_.world.size());
    replica_.load(
        (static_cast<std::uint64_t>(step) * ranks + static_cast<std::uint64_t>(context_.world.rank())) *
        work_.preset.batch);
    replica_.forward();
    replica_.gpt().backward([&](std::size_t b) { reducer_.ready(b); }, [&] { reducer_.tick(); });
    reducer_.wait();
    replica_.gpt().update(work_.preset.rule(step, context_.world.size()));
    reducer_.finish();
    context_.device.synchronize();
    context_.count_batch();
  }

  /// Parameters and moments, in plain memory.
  void stage_out() {
    Gpt& gpt = replica_.gpt();
    const std::size_t bytes = gpt.table().size() * sizeof(float);
    int part = 0;
    for (const float* from : {gpt.parameters(), gpt.moments(0), gpt.moments(1)})
      context_.device.copy_to_host(staging_.data() + bytes * static_cast<std::size_t>(part++), from, bytes);
  }
  void stage_in() {
    Gpt& gpt = replica_.gpt();
    const std::size_t bytes = gpt.table().size() * sizeof(float);
    int part = 0;
    for (float* to : {gpt.parameters(), gpt.moments(0), gpt.moments(1)})
      context_.device.copy_to_device(to, staging_.data() + bytes * static_cast<std::size_t>(part++), bytes);
    gpt.to_bf16();
  }

  std::span<std::byte> shard(int rank) {
    return std::span(staging_).subspan(static_cast<std::size_t>(rank) * shard_bytes_, shard_bytes_);
  }
  /// Whose shard this rank reads: that of a rank on the next node, where there are several.
  int neighbour() const { return partner_on_other_node(context_.topology, context_.world.rank()); }

  void save(int step, CaseRecord::Row& row) {
    Communicator& world = context_.world;
    const fs::path folder = checkpoint(step);
    const double begin = now_s();
    stage_out();
    const WorkOnFiles work(context_.heartbeat);
    const auto failed = file_error_of([&] {
      if (first()) fs::create_directories(folder);
    });
    const ShardHeader header =
        header_of(static_cast<std::uint64_t>(step), world.rank(), world.size(), shard(world.rank()));
    agree_error(world, failed);
    const StorageMeter meter(true, folder.string());
    const double start = now_s();
    WriteTimes times;
    agree_error(world, file_error_of([&] {
                  times = write_shard(shard_path(folder, world.rank()), header, shard(world.rank()));
                }));
    const double written = world.max(times.write_s + times.sync_s);
    agree_error(world, file_error_of([&] {
                  if (first()) mark_done(folder);
                }));
    const double stalled = now_s() - begin;
    const auto bytes = static_cast<double>(shard_bytes_);
    written_.add(meter, bytes);

    double read_s = 0, read_all_s = 0;
    const int errors = verify(step, read_s, read_all_s);
    row.t.push_back(context_.since_start(start));
    row.block.push_back(0);
    row.values["sync"].push_back(times.sync_s);
    written_.alone.push_back(bytes / (times.write_s + times.sync_s));
    written_.all.push_back(bytes * world.size() / written);
    read_.alone.push_back(bytes / read_s);
    read_.all.push_back(bytes * world.size() / read_all_s);
    row.values["stall"].push_back(stalled / (stalled + trained_s_));
    row.values["errors"].push_back(errors);
    row.integers["digest_parameter"].push_back(replica_.gpt().parameter_digest());
    context_.record.add_time(0, times.write_s + times.sync_s + read_s, 0);
    remove_older(step);
    trained_s_ = 0;
  }

  /// Rates, and what the kernel's counters say to them.
  struct Rates {
    std::vector<double> alone, all;  ///< B/s, of each checkpoint
    double moved = 0, asked = 0;     ///< bytes of this rank, in all of them

    void add(const StorageMeter& meter, double bytes) {
      moved += meter.moved();
      asked += bytes;
    }
    double moved_share() const { return moved / asked; }
  };

  /// One rank that met a cache makes the rates of all those of caches: they are of the same files.
  void name_rates(CaseRecord::Row& row) {
    if (written_.alone.empty()) return;
    row.values["moved_share_write"] = {written_.moved_share()};
    row.values["moved_share_read"] = {read_.moved_share()};
    row.values["resident_share"] = {resident_};
    const auto name = [&](const std::string& direction, Rates& rates, double resident) {
      const bool cold = met_storage(rates.moved, rates.asked, resident);
      const char* kind = context_.world.min(cold ? 1 : 0) > 0 ? "" : "_cached";
      row.values[direction + kind] = std::move(rates.alone);
      row.values[direction + "_all" + kind] = std::move(rates.all);
    };
    name("write", written_, 0);
    name("read", read_, resident_);
  }

  /// Reads another rank's shard back; 1 if it is not what was written.
  int verify(int step, double& read_s, double& read_all_s) {
    Communicator& world = context_.world;
    std::vector<std::byte> back(shard_bytes_);
    int errors = 0;
    const int from = neighbour();  // not inside the clock: it goes through all ranks
    const fs::path file = shard_path(checkpoint(step), from);
    world.barrier();
    const StorageMeter meter(false, folder_.string());
    const double start = now_s();
    const auto failed = file_error_of([&] {
      try {
        const ShardRead read = read_shard(file, static_cast<std::uint64_t>(step), from, back);
        read_s = read.read_s;
        resident_ = std::max(resident_, read.resident);
      } catch (const Error& e) {
        read_s = now_s() - start;
        if (e.kind() != ErrorKind::data) throw;
        errors = 1;
        results::Miscompare record;
        record.entity = context_.device_entity;
        record.index = static_cast<std::uint64_t>(step);
        record.t = context_.since_start(now_s());
        context_.record.miscompare(record);
        context_.record.event("miscompare", name_of_rank(context_, world.rank()) + ": " + e.what(),
                              context_.device_entity);
      }
    });
    read_.add(meter, static_cast<double>(back.size()));
    read_all_s = world.max(read_s);
    agree_error(world, failed);
    return errors;
  }

  /// The last two stay: the one to start from, and one complete whatever happens to it.
  void remove_older(int step) {
    context_.world.barrier();
    if (!first()) return;
    std::error_code ignored;
    fs::remove_all(checkpoint(step - 2 * every_), ignored);
  }

  /// From the last checkpoint but one (or the only one), with nothing of the present state.
  void restart(const std::vector<std::uint64_t>& after, CaseRecord::Row& row) {
    Communicator& world = context_.world;
    const int last = work_.steps / every_ * every_, from = last > every_ ? last - every_ : last;
    if (from == 0) return;
    replica_.gpt().initialise(RandomStream(1, "something else"));
    std::fill(staging_.begin(), staging_.end(), std::byte{0xff});
    std::vector<std::byte> mine(shard_bytes_);
    const auto failed = file_error_of([&] {
      const WorkOnFiles work(context_.heartbeat);
      if (!is_done(checkpoint(from)))
        throw Error(ErrorKind::resource, "checkpoint: " + checkpoint(from).string() + ": has no DONE marker");
      read_shard(shard_path(checkpoint(from), world.rank()), static_cast<std::uint64_t>(from), world.rank(),
                 mine);
    });
    agree_error(world, failed);
    world.all_gather(mine.data(), staging_.data(), shard_bytes_);
    stage_in();
    int wrong = replica_.gpt().parameter_digest() != after[static_cast<std::size_t>(from - 1)];
    for (int step = from; step < work_.steps; ++step) {
      train(step);
      wrong += replica_.gpt().parameter_digest() != after[static_cast<std::size_t>(step)];
    }
    context_.record.parameter("restarted_from", from);
    if (wrong == 0) return;
    row.values["errors"].back() += wrong;
    context_.record.set_state(
        results::CaseState::fail,
        fmt::format("{} of {} steps after a restart from step {} have other bits than before", wrong,
                    work_.steps - from + 1, from));
  }

  /// Nothing is left behind unless asked.
  void clean() noexcept {
    if (!first() || context_.config.options.flag("train.keep")) return;
    const WorkOnFiles work(context_.heartbeat);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Context& context_;
  TrainWork work_;
  int every_;
  Replica replica_;
  GradientReducer reducer_;
  std::size_t shard_bytes_ = 0, state_bytes_ = 0;
  std::vector<std::byte> staging_;
  fs::path folder_;
  double trained_s_ = 0;
  Rates written_, read_;
  double resident_ = 0;  ///< largest share of a shard in the page cache before it was read
};

}  // namespace

void run_checkpoint(const Case& c, Context& context) { CheckpointCase(c, context).run(); }

}  // namespace assay::train
