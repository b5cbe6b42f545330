// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/random_case.hpp"

#include <algorithm>
#include <bit>

#include "base/affinity.hpp"
#include "base/clock.hpp"
#include "base/random.hpp"
#include "suite/together.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/evidence.hpp"
#include "suites/storage/histogram.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/verify_budget.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t block_bytes = 4096, block_words = block_bytes / sizeof(std::uint64_t);
constexpr std::uint64_t most_blocks = 1024;  ///< of a sample, each in memory of its own until it is checked

class RandomCase {
 public:
  RandomCase(const Case& c, Context& context, const Site& site)
      : case_(c),
        context_(context),
        site_(site),
        write_(c.operation == "random-write"),
        depth_(c.parameters.at("queue_depth").get<int>()),
        entity_(context.entities.node(context.topology.me().node)),
        log_({site.key, site.files(), 2, 0}, entity_, context) {}

  void run() {
    begin_case(case_, context_, entity_);
    context_.record.declare_integers("latency_histogram", {"octave"},
                                     {LatencyHistogram().by_octave().size()});
    Together together(context_.node);
    if (context_.node.rank() == 0) together.guarded([&] { measure(); });
    context_.node.quiet_barrier();
    share_times(context_.record, context_.node);
    together.rethrow();
  }

 private:
  void measure() {
    const AnyCpu
        any_cpu;  // a disk with one queue interrupts one CPU, and is slower for a thread held to another
    const double begin = now_s();
    file_.open(case_, context_, site_, log_, depth_, 1);
    Transfer& transfer = *file_.transfer;
    const double share_s = std::max(0.3, 0.5 * case_.seconds);
    transfer.shorten(transfer.fitted_blocks(share_s / 2));
    transfer.lay_out(share_s);
    bits_ = static_cast<int>(std::bit_width(transfer.file_bytes() / block_bytes)) - 1;
    const std::uint64_t blocks = std::uint64_t{1} << bits_;
    generation_.assign(blocks, 1);
    batch_ = std::min({most_blocks, blocks, std::uint64_t{64} * static_cast<std::uint64_t>(depth_)});
    memory_.emplace(batch_ * block_bytes);
    file_.engine->use_memory(memory_->bytes());
    const double ready = now_s();

    std::uint64_t runs = 0;
    Operation operation;
    operation.sync = [&] { prepare(write_); };
    operation.run = [&](std::uint64_t k) {
      for (std::uint64_t i = 0; i < k; ++i) file_.engine->run(write_, requests_);
      transfer.examine(write_, requests_);
      runs += k;
    };
    operation.verify = [&](std::size_t) {
      for (const Request& r : requests_) histogram_.add(r.latency_s);
      if (write_) return;
      budget_.begin();
      evidence_.verified += verify(0, batch_);
      budget_.end();
    };
    SamplingPlan plan = context_.sampling(case_.seconds);
    plan.repetitions = 1;
    const StorageMeter meter(write_, file_.where);
    const DeviceMeter disks({file_.where}, context_.node);
    SampleSeries series = sample(operation, plan);
    // The kernel counts what it is given through the page cache, and nothing here waits until it is written.
    evidence_.moved = write_ && !file_.direct ? results::not_taken : meter.moved();
    evidence_.device_moved = disks.moved(write_);
    evidence_.slow_disk = disks.slow_disk(write_);
    evidence_.asked = static_cast<double>(runs * batch_ * block_bytes);
    const double end = now_s();
    if (write_) verify_written();
    series.verify_s += now_s() - end;
    transfer.close();
    evidence_.take(log_);
    context_.record.add_time(ready - begin + series.warmup_s, series.timed_s, series.verify_s);
    report(series);
  }

  /// Before the clock: other places than before, each once; words of their next generation, or memory in
  /// which nothing right is left.
  void prepare(bool write) {
    requests_.resize(batch_);
    places_.resize(batch_);
    for (std::uint64_t i = 0; i < batch_; ++i) {
      const std::uint64_t block = places_[i] = scattered(next_++, bits_, context_.random.key());
      std::byte* data = memory_->bytes().data() + i * block_bytes;
      requests_[i] = {file_.transfer->descriptor(), block * block_bytes, data, block_bytes, 0, 0};
      if (write) {
        generation_[block] = static_cast<std::uint16_t>(generation_[block] % 4095 + 1);
        log_.known().generations = std::max<std::uint64_t>(log_.known().generations, generation_[block] + 1);
        fill(log_.known().key, address_of_block(block), words(i));
      }
    }
    if (!write) std::fill(memory_->words().begin(), memory_->words().end(), 0x5a5a5a5a5a5a5a5aULL);
    if (context_.injector != nullptr && told_to(context_, "disk-eio")) requests_[0].fd = -EIO;
  }

  WordAddress address_of_block(std::uint64_t block) const {
    return {file_.transfer->file(), generation_[block], block * block_words};
  }
  std::span<std::uint64_t> words(std::uint64_t i) {
    return memory_->words().subspan(i * block_words, block_words);
  }

  /// Every word of blocks, as `Transfer::verify` does it. How many bytes were compared.
  double verify(std::uint64_t first, std::uint64_t count) {
    Block block;
    block.path = file_.transfer->path();
    block.reread = [this](std::uint64_t offset) { return file_.transfer->read_again(offset); };
    std::uint64_t compared = 0;
    for (std::uint64_t i = first; i < first + count; ++i) {
      block.address = address_of_block(places_[i]);
      block.data = words(i);
      block.read_words = static_cast<std::uint64_t>(requests_[i].result) / sizeof(std::uint64_t);
      if (i == 0) corrupt(block, log_.known(), context_);
      compared += log_.check(block, i == first || budget_.left());
    }
    return static_cast<double>(compared * sizeof(std::uint64_t));
  }

  /// Reads back what was written, as much as the budget allows: as many blocks as are in flight at least.
  void verify_written() {
    const double stored = file_.transfer->evict();
    budget_.begin();
    const std::uint64_t written = std::min(next_, generation_.size());
    const auto some = static_cast<std::uint64_t>(depth_);
    next_ -= written;
    for (std::uint64_t done = 0; done < written; done += some) {
      if (done > 0 && !budget_.left()) return;
      const std::uint64_t at = done % batch_;
      if (at == 0) prepare(false);
      const auto few = std::span(requests_).subspan(at, std::min(some, batch_ - at));
      file_.engine->run(false, few);
      file_.transfer->examine(false, few);
      evidence_.verified += stored * verify(at, few.size());
    }
  }

  void report(const SampleSeries& series) {
    auto& row = context_.record.add_row(entity_);
    auto& rates = row.values[evidence_.cold() ? "rate" : "rate_cached"];
    for (std::size_t s = 0; s < series.seconds.size(); ++s) {
      row.t.push_back(context_.since_start(series.start_s[s]));
      rates.push_back(static_cast<double>(batch_) / series.seconds[s]);
    }
    row.block = series.block;
    row.values["latency_p50"] = {histogram_.quantile(0.5)};
    row.values["latency_p99"] = {histogram_.quantile(0.99)};
    row.values["latency_p999"] = {histogram_.count() >= 1000 ? histogram_.quantile(0.999)
                                                             : results::not_taken};
    row.integers["latency_histogram"] = histogram_.by_octave();
    context_.record.parameter("operations_timed", histogram_.count());
    context_.record.parameter("histogram_first_s", LatencyHistogram::least_s);
    evidence_.report(row, file_.where, case_, context_);
  }

  const Case& case_;
  Context& context_;
  const Site& site_;
  bool write_;
  int depth_, entity_, bits_ = 0;
  DamageLog log_;
  LocalFile file_;
  std::optional<Aligned> memory_;
  std::vector<std::uint16_t> generation_;  ///< of each block
  std::vector<std::uint64_t> places_;
  std::vector<Request> requests_;
  std::uint64_t batch_ = 0, next_ = 0;
  LatencyHistogram histogram_;
  VerifyBudget budget_;
  Evidence evidence_;
};

}  // namespace

std::uint64_t scattered(std::uint64_t i, int bits, std::uint64_t key) noexcept {
  const std::uint64_t mask = bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  const int half = std::max(1, bits / 2);
  std::uint64_t x = (i + key) & mask;
  for (int round = 0; round < 3; ++round) {
    x = (x * (mix64(key, static_cast<std::uint64_t>(round)) | 1)) & mask;
    x ^= x >> half;
  }
  return x;
}

void run_random(const Case& c, Context& context, const Site& site) { RandomCase(c, context, site).run(); }

}  // namespace assay::storage
