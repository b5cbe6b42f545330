// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/checkpoint_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "base/cgroup.hpp"
#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/group_case.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/step_cost.hpp"
#include "suites/storage/storage_plan.hpp"
#include "suites/storage/training_step.hpp"

namespace assay::storage {
namespace {

constexpr std::size_t least_checkpoints = 3, most_checkpoints = 200, least_steps = 5;

class CheckpointCase : GroupCase {
 public:
  CheckpointCase(const Case& c, Context& context, const Site& site)
      : GroupCase(c, context, site),
        name_(fmt::format("{:06}", context.world.rank())),
        step_(context, group_, together_) {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    prepare();
    for (Evidence* evidence : {&write_evidence_, &restore_evidence_})
      evidence->compare_with_caches(case_, writer_ ? static_cast<double>(writer_->chunk_bytes()) : 0, group_);
    const double ready = now_s();
    context_.record.add_time(ready - begin, 0, 0);
    const DeviceMeter disks({site_.paths[path_]}, context_.node);
    if (!together_.any(false)) blocking_rounds(ready + 0.6 * case_.seconds);
    write_evidence_.device_moved = disks.moved(true);
    restore_evidence_.device_moved = disks.moved(false);
    if (!together_.any(false)) steps(ready + case_.seconds);
    report();
    together_.rethrow();
  }

 private:
  void prepare() {
    Layout layout;
    // Beside the arena, which may hold most of the memory. All have looked at it before any takes of it.
    const auto memory = static_cast<std::uint64_t>(group_.min(
        static_cast<double>(state_limit(available_memory_bytes(), context_.topology.me().local_size))));
    together_.guarded([&] {
      write_engine_ = open_engine(context_, sequential_depth, sharers());
      read_engine_ = open_engine(context_, sequential_depth, sharers());
      folder_.emplace(site_.paths[path_], site_.run, site_.file_systems[path_]);
      layout = state_layout(memory);
      const std::string& where = site_.paths[path_];
      direct_ = static_cast<bool>(create_around(*folder_, name_, true, layout.block_bytes, where, context_));
      log_.known().words = layout.end() / sizeof(std::uint64_t);
    });
    together_.any(false);  // all have looked at the space before any takes of it
    const auto folders = group_.all_gather_text(folder_ ? folder_->path() : "");
    const int from = partner();
    const std::string other = fmt::format("{:06}", world_rank(from));
    other_path_ = folders[static_cast<std::size_t>(from)] + "/data-" + other;
    together_.guarded([&] {
      const std::string own = folder_->path() + "/data-" + name_;
      writer_.emplace(Descriptor(), own, site_.file(context_.world.rank(), path_), layout, *write_engine_,
                      log_, context_);
      writer_->use_file(folder_->create(name_ + "-new", direct_, false));
    });
    fit_together(writer_, case_.seconds / (4 * least_checkpoints), together_, group_);
    together_.guarded([&] {
      writer_->use_file(Descriptor());
      folder_->remove(name_ + "-new");
      layout = writer_->layout();
      reader_.emplace(Descriptor(), other_path_, site_.file(world_rank(from), path_), layout, *read_engine_,
                      log_, context_);
      CaseRecord& record = context_.record;
      const Model& model = model_for(context_.world.size());
      record.parameter("model", model.name);
      record.parameter("share_bytes", layout.chunk_bytes());
      record.parameter("scale",
                       static_cast<double>(layout.chunk_bytes()) / static_cast<double>(model.share()));
      record.parameter("direct", direct_ ? 1 : 0);
    });
  }

  int world_rank(int rank) const {
    return case_.stage == Stage::node_local
               ? context_.topology.ranks_of(context_.topology.me().node)[static_cast<std::size_t>(rank)]
               : rank;
  }

  /// One chunk: the share of a rank, in memory as a model's state is. Old and new file exist side by side.
  Layout state_layout(std::uint64_t memory) {
    const Model& model = model_for(context_.world.size());
    Layout layout = agreed_layout(context_, site_.paths[path_], folder_->space(), 2 * sharers());
    const std::uint64_t most = case_.parameters.at("most_bytes").get<std::uint64_t>();
    layout.chunk_blocks = std::max<std::uint64_t>(
        1, std::min({layout.file_bytes(), most, memory, model.share()}) / layout.block_bytes);
    layout.chunks = 1;
    return layout;
  }

  /// From the creation of the new file until its name is safe.
  void write() {
    const double begin = now_s();
    writer_->use_file(folder_->create(name_ + "-new", direct_, false));
    writer_->move(true);
    writer_->sync();
    writer_->close();
    folder_->rename(name_ + "-new", name_);
    context_.apply_injected_delay(begin, 1);
  }

  void blocking_rounds(double until) {
    for (std::size_t round = 0; round < most_checkpoints; ++round) {
      together_.guarded([&] { writer_->prepare(true); });
      group_.barrier();
      one_sample(written_, true, [&] { write(); });
      if (together_.any(false)) return;  // all are in place
      together_.guarded([&] {
        reader_->adopt(open_made(other_path_, direct_, false), other_path_, reader_->file(),
                       reader_->layout(), round % generations_ + 1);
        reader_->drop_cache();
        reader_->prepare(false);
      });
      group_.barrier();
      one_sample(restored_, false, [&] {
        reader_->move(false);
        reader_->close();
      });
      const double begin = now_s();
      together_.guarded([&] {
        reader_->use_file(open_made(other_path_, direct_, false));              // to read a wrong word again
        restore_evidence_.verified += static_cast<double>(reader_->verify(1));  // what is restored is used
        reader_->use_file(Descriptor());
      });
      context_.record.add_time(0, 0, now_s() - begin);
      context_.count_batch();
      if (together_.any((round + 1 >= least_checkpoints || now_s() > until + case_.seconds) &&
                        (now_s() > until || now_s() > context_.end_s)))
        return;
    }
  }

  template <class F>
  void one_sample(SampleSeries& series, bool write, F&& action) {
    Evidence& evidence = write ? write_evidence_ : restore_evidence_;
    const StorageMeter meter(write, site_.paths[path_]);
    const double begin = now_s();
    together_.guarded(action);
    series.start_s.push_back(begin);
    series.seconds.push_back(now_s() - begin);
    context_.record.add_time(0, series.seconds.back(), 0);
    evidence.moved += meter.moved();
    evidence.asked += writer_ ? static_cast<double>(writer_->chunk_bytes()) : 0;
    if (!write && reader_) evidence.resident = reader_->resident_share();
  }

  /// Steps while another thread writes a checkpoint, and as many alone before and after it, by turns.
  void steps(double until) {
    bool go = some_steps(alone_, [&] { return alone_.back().size() < least_steps; });
    while (go) {
      std::atomic<bool> done = false;
      Together write_beside(group_);
      std::optional<std::jthread> writing;
      together_.guarded([&] {
        writer_->prepare(true);
        writing.emplace([&] {
          write_beside.guarded([&] { write(); });
          done = true;
        });
      });
      go = some_steps(during_, [&] { return !done; });
      writing.reset();  // when it is through
      together_.guarded([&] { write_beside.rethrow(); });
      go = go && some_steps(alone_, [&] {
             return alone_.back().size() < std::max(during_.back().size(), least_steps);
           });
      // The checkpoint ended amid the last step of the round.
      if (go && during_.back().size() > 1) during_.back().pop_back();
      const bool enough = during_.size() >= least_checkpoints && now_s() > until;
      go = go && !together_.any(enough || now_s() > context_.end_s);
    }
  }

  /// False on all ranks, and without a series, where a step failed on one.
  template <class F>
  bool some_steps(std::vector<std::vector<double>>& series, F&& more) {
    series.emplace_back();
    do {
      const auto seconds = step_.run();
      if (!seconds) {
        series.pop_back();
        return false;
      }
      series.back().push_back(*seconds);
      context_.record.add_time(0, *seconds, 0);
    } while (group_.max(more() ? 1 : 0) > 0);
    return true;
  }

  static double median_of_all(const std::vector<std::vector<double>>& series) {
    std::vector<double> all;
    for (const auto& some : series) all.insert(all.end(), some.begin(), some.end());
    return median(all);
  }

  void report() {
    const std::uint64_t bytes = writer_ ? writer_->chunk_bytes() : 0;
    Evidence damage;
    damage.take(log_);
    restore_evidence_.damage = damage.damage;
    const NodeSeries written = gather_node(written_, bytes, write_evidence_, context_);
    const NodeSeries restored = gather_node(restored_, bytes, restore_evidence_, context_);
    auto* reported = report_both(written, "write", restored, "restore", site_.paths[path_], case_, context_);
    if (reported == nullptr) return;
    auto& row = *reported;
    row.values["write_time"] = {median(written_.seconds)};
    row.values["restore_time"] = {median(restored_.seconds)};
    if (during_.empty() || alone_.size() != during_.size() + 1) return;
    row.values["step_alone"] = {median_of_all(alone_)};
    row.values["step_during"] = {median_of_all(during_)};
    const StepCost cost = step_cost(alone_, during_);
    row.values["step_cost"] = {cost.cost};
    row.values["step_cost_low"] = {cost.low};
    row.values["step_cost_high"] = {cost.high};
  }

  static constexpr std::size_t generations_ = 4095;
  std::string name_, other_path_;
  bool direct_ = false;
  TrainingStep step_;
  std::optional<Folder> folder_;
  std::unique_ptr<Engine> write_engine_, read_engine_;
  std::optional<Transfer> writer_, reader_;
  SampleSeries written_, restored_;
  Evidence write_evidence_, restore_evidence_;
  std::vector<std::vector<double>> alone_, during_;  ///< seconds of steps, by round
};

}  // namespace

const Model& model_for(int ranks) noexcept {
  static constexpr Model models[] = {{"llama3-8b", 105e9, 8},
                                     {"llama3-70b", 912e9, 64},
                                     {"llama3-405b", 5.29e12, 512},
                                     {"llama3-1t", 18e12, 1024}};
  const Model* chosen = models;
  for (const Model& model : models)
    if (model.ranks <= ranks) chosen = &model;
  return *chosen;
}

void run_checkpoint(const Case& c, Context& context, const Site& site) {
  CheckpointCase(c, context, site).run();
}

}  // namespace assay::storage
