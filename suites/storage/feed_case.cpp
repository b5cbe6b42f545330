// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/feed_case.hpp"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/evidence.hpp"
#include "suites/storage/group_case.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/training_step.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint32_t most_record_bytes = 1 << 20;
constexpr std::size_t most_steps = 16, most_records = 256, least_records = 8, ahead = 2;
constexpr int feed_depth = 16;
constexpr std::size_t most_epochs = 200, least_epochs = 3;

/// Batches of one epoch on their way from a reading thread to the steps.
class Batches {
 public:
  /// The epoch begins: the reader may be `ahead` batches before the steps.
  void open() { change(room_, ahead); }
  /// Called by the reader: waits until there is room for batch `i`. False where it is to end.
  bool wait_for_room(std::size_t i, const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    return changed_.wait(lock, end, [&] { return i < room_; });
  }
  void add() { change(ready_, 1); }
  /// Called by the steps: seconds until batch `i` was there.
  double wait_for(std::size_t i) {
    const double begin = now_s();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_ > i; });
    return now_s() - begin;
  }
  void use() { change(room_, 1); }

 private:
  void change(std::size_t& value, std::size_t by) {
    {
      const std::lock_guard lock(mutex_);
      value += by;
    }
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t ready_ = 0, room_ = 0;
};

class FeedCase : GroupCase {
 public:
  FeedCase(const Case& c, Context& context, const Site& site)
      : GroupCase(c, context, site), step_(context, group_, together_) {}

  void run() {
    begin_case(case_, context_, entity_);
    const double begin = now_s();
    together_.guarded([&] { file_.open(case_, context_, site_, log_, feed_depth, context_.node.size()); });
    group_.barrier();  // all have looked at the space before any takes of it
    lay_out_together(file_.transfer, std::max(0.3, 0.5 * case_.seconds), together_, group_);
    evidence_.compare_with_caches(
        case_, file_.transfer ? static_cast<double>(file_.transfer->file_bytes()) : 0, group_);
    choose_size();
    const double ready = now_s();
    context_.record.add_time(ready - begin, 0, 0);
    const StorageMeter meter(false, file_.where);
    const DeviceMeter disks({file_.where}, context_.node);
    for (std::size_t i = 0; i < most_epochs; ++i) {
      if (together_.any(false)) break;
      epoch();
      if (together_.any(i + 1 >= least_epochs &&
                        (now_s() - ready > case_.seconds || now_s() > context_.end_s)))
        break;
    }
    evidence_.moved = meter.moved();
    evidence_.device_moved = disks.moved(false);
    evidence_.take(log_);
    report();
    together_.guarded([&] { file_.transfer->close(); });
    together_.rethrow();
  }

 private:
  /// An epoch lasts about a tenth of the case's time, as far as storage decides: some records tell.
  void choose_size() {
    double seconds = 0;
    together_.guarded([&] {
      prepare();
      const double begin = now_s();
      file_.engine->run(false, requests_);
      context_.apply_injected_delay(begin, 1, true);
      seconds = now_s() - begin;
      file_.transfer->examine(false, requests_);
    });
    seconds = std::max(group_.max(seconds), 1e-6);
    const double fit = 0.1 * case_.seconds / seconds * static_cast<double>(records_);
    records_ = std::clamp(static_cast<std::size_t>(std::min(fit, 1e6)), least_records, most_records);
    steps_ = std::min(most_steps, records_);
    records_ = records_ / steps_ * steps_;
    context_.record.parameter("records_per_step", records_ / steps_);
    context_.record.parameter("steps", steps_);
  }

  /// Other places of the file than before, in memory that holds nothing right.
  void prepare() {
    const std::uint64_t pages = file_.transfer->file_bytes() / page;
    requests_.clear();
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < records_; ++i, ++next_) {
      const std::uint32_t size = record_bytes_of(next_, context_.random.key());
      const std::uint64_t first = mix64(context_.random.key() + 1, next_) % (pages - size / page + 1);
      requests_.push_back({file_.transfer->descriptor(), first * page, nullptr, size, 0, 0});
      bytes += size;
    }
    if (!memory_ || memory_->bytes().size() < bytes) {
      memory_.emplace(bytes + most_record_bytes);
      file_.engine->use_memory(memory_->bytes());
    }
    std::fill(memory_->words().begin(), memory_->words().end(), 0x5a5a5a5a5a5a5a5aULL);
    std::byte* at = memory_->bytes().data();
    for (Request& r : requests_) {
      r.data = at;
      at += r.bytes;
    }
    if (context_.injector != nullptr && told_to(context_, "disk-eio")) requests_[0].fd = -EIO;
    if (!file_.direct) evidence_.resident = std::max(evidence_.resident, file_.transfer->forget_file());
  }

  std::span<Request> batch(std::size_t step) {
    return std::span(requests_).subspan(step * (records_ / steps_), records_ / steps_);
  }

  /// As many batches are read within the clock as steps are done.
  void epoch() {
    Batches batches;
    Together read(group_);
    std::optional<std::jthread> reading;  // its end stops it: steps may end before the batches do
    together_.guarded([&] {
      prepare();
      reading.emplace([&](const std::stop_token& end) {
        for (std::size_t s = 0; s < steps_ && batches.wait_for_room(s, end); ++s) {
          read.guarded([&] {
            file_.engine->run(false, batch(s));
            file_.transfer->examine(false, batch(s));
          });
          batches.add();
        }
      });
    });
    if (together_.any(false)) return;
    const double begin = now_s();
    batches.open();
    const std::optional<double> stalled = all_steps(batches);
    reading.reset();
    together_.guarded([&] {
      read.rethrow();
      context_.apply_injected_delay(begin, steps_);
    });
    if (!stalled) return;
    const double end = now_s();
    start_s_.push_back(begin);
    seconds_.push_back(end - begin);
    stalled_s_.push_back(*stalled);
    together_.guarded([&] { verify(); });
    context_.record.add_time(0, end - begin, now_s() - end);
  }

  /// Seconds in which they waited for batches; nothing on all ranks where a step failed on one.
  std::optional<double> all_steps(Batches& batches) {
    double stalled = 0;
    for (std::size_t s = 0; s < steps_; ++s) {
      stalled += batches.wait_for(s);
      together_.guarded([&] {
        for (const Request& r : batch(s)) step_.take({r.data, r.bytes});
      });
      if (!step_.run()) return std::nullopt;
      batches.use();
    }
    return stalled;
  }

  void verify() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Request& r = requests_[i];
      // Words belong to blocks of the file that were written at once: what is stale or torn is told by them.
      Block block;
      block.path = file_.transfer->path();
      block.address = {file_.transfer->file(), 1, r.offset / sizeof(std::uint64_t)};
      block.data = {reinterpret_cast<std::uint64_t*>(r.data), r.bytes / sizeof(std::uint64_t)};
      block.read_words = static_cast<std::uint64_t>(r.result) / sizeof(std::uint64_t);
      block.reread = [this](std::uint64_t offset) { return file_.transfer->read_again(offset); };
      if (i == 0) corrupt(block, log_.known(), context_);
      log_.check(block);
      evidence_.asked += r.bytes;
      evidence_.verified += r.bytes;
    }
  }

  void report() {
    Json mine = evidence_.to_json();
    mine["start"] = start_s_;
    mine["seconds"] = seconds_;
    mine["stalled"] = stalled_s_;
    Evidence all;
    std::size_t samples = most_epochs;
    std::vector<Json> ranks;
    for (const std::string& text : context_.node.all_gather_text(mine.dump())) {
      ranks.push_back(Json::parse(text));
      all.add(Evidence::from(ranks.back()));
      samples = std::min(samples, ranks.back()["seconds"].size());
    }
    if (context_.node.rank() != 0 || samples == 0 || together_.failed()) return;
    auto& row = context_.record.add_row(entity_);
    for (std::size_t s = 0; s < samples; ++s) {
      double longest = 0, first = std::numeric_limits<double>::infinity(), stalled = 0;
      for (const Json& rank : ranks) {
        longest = std::max(longest, rank["seconds"][s].get<double>());
        first = std::min(first, rank["start"][s].get<double>());
        stalled = std::max(stalled, rank["stalled"][s].get<double>() / rank["seconds"][s].get<double>());
      }
      row.t.push_back(context_.since_start(first));
      row.block.push_back(static_cast<std::int32_t>(s * 3 / samples));
      row.values["stalled"].push_back(stalled);
      const double records = static_cast<double>(records_ * ranks.size());
      row.values[all.cold() ? "records" : "records_cached"].push_back(records / longest);
    }
    row.values["bandwidth_read"] = {all.asked / sum(seconds_)};
    all.report(row, file_.where, case_, context_);
  }
  static double sum(const std::vector<double>& values) {
    double out = 0;
    for (const double v : values) out += v;
    return out;
  }

  TrainingStep step_;
  LocalFile file_;
  std::optional<Aligned> memory_;
  std::vector<Request> requests_;
  std::uint64_t next_ = 0;
  std::size_t records_ = least_records, steps_ = least_records;  ///< of an epoch
  std::vector<double> start_s_, seconds_, stalled_s_;
  Evidence evidence_;
};

}  // namespace

std::uint32_t record_bytes_of(std::uint64_t i, std::uint64_t key) noexcept {
  const std::uint64_t draw = mix64(key, i);
  const std::uint64_t power = page << (draw % 8);  // 4 KiB to 512 KiB
  return static_cast<std::uint32_t>((power + (draw >> 8) % (power + 1)) / page * page);
}

void run_feed(const Case& c, Context& context, const Site& site) { FeedCase(c, context, site).run(); }

}  // namespace assay::storage
