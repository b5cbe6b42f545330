// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/together_case.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <list>
#include <optional>
#include <thread>

#include "base/affinity.hpp"
#include "base/clock.hpp"
#include "measure/statistics.hpp"
#include "suites/storage/device_meter.hpp"
#include "suites/storage/local_file.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/storage_plan.hpp"

namespace assay::storage {
namespace {

struct OnePath {
  OnePath(std::size_t number, const DamageLog& empty) : path(number), log(empty) {}

  std::size_t path;
  DamageLog log;
  LocalFile file;
  Transfer::Fit fit{};
  double alone = 0;  ///< B/s of the node
  std::exception_ptr failure;
};

/// How many of the paths are on the same file system as this one.
int on_file_system_of(const std::string& path, const std::vector<std::string>& paths) {
  const auto device = [](const std::string& p) {
    struct stat info {};
    return ::stat(p.c_str(), &info) == 0 ? info.st_dev : dev_t{};
  };
  return static_cast<int>(std::count_if(paths.begin(), paths.end(),
                                        [&](const std::string& p) { return device(p) == device(path); }));
}

class TogetherCase {
 public:
  TogetherCase(const Case& c, Context& context, const Site& site)
      : case_(c),
        context_(context),
        site_(site),
        write_(c.operation.ends_with("write")),
        entity_(context.entities.node(context.topology.me().node)),
        together_(context.node) {
    for (const std::size_t path : local_paths(context.config, context.topology.lacks))
      all_.emplace_back(path, DamageLog({site.key, site.files(), 2, 0}, entity_, context));
  }

  void run() {
    begin_case(case_, context_, entity_);
    const AnyCpu any_cpu;  // a thread for each path
    const double begin = now_s();
    together_.guarded([&] { open(); });
    context_.node.barrier();  // all have looked at the space before any takes of it
    lay_out(0.3 * case_.seconds);
    if (!together_.any(false)) measure(now_s() - begin);
    report();
    together_.rethrow();
  }

 private:
  void open() {
    std::vector<std::string> paths;
    for (const OnePath& one : all_) paths.push_back(site_.paths[one.path]);
    for (OnePath& one : all_) {
      Case c = case_;
      c.parameters["path_index"] = one.path;
      const int sharers = context_.node.size() * on_file_system_of(site_.paths[one.path], paths);
      one.file.open(c, context_, site_, one.log, sequential_depth, sharers, static_cast<int>(all_.size()));
    }
  }

  /// Calls it for all paths at once, each on a thread of its own; throws what the first one threw that
  /// failed.
  template <class F>
  void at_once(const F& f) {
    std::vector<std::jthread> threads;
    for (OnePath& one : all_)
      threads.emplace_back([&] {
        try {
          f(one);
        } catch (...) {
          one.failure = std::current_exception();
        }
      });
    threads.clear();  // waits for them
    for (OnePath& one : all_)
      if (one.failure) std::rethrow_exception(std::exchange(one.failure, nullptr));
  }

  /// Chunks are those planned. Where these take some path too long, all are as long as they take together:
  /// what one path met beside the others may be a matter of luck, so its rate alone says which part is its.
  void lay_out(double seconds) {
    together_.guarded([&] { at_once([&](OnePath& one) { one.fit = one.file.transfer->fit(seconds / 2); }); });
    const auto share = [&](double value) { return together_.any(false) ? 0 : context_.node.min(value); };
    double blocks = 0, rates = 0;
    bool cut = false;
    for (OnePath& one : all_) {
      one.alone = std::max(0.0, context_.node.max(alone(one.path).value_or(0)));
      const double fitted = share(static_cast<double>(one.fit.blocks));
      blocks += fitted;
      rates += one.alone;
      if (one.file.transfer)
        cut = cut || fitted < static_cast<double>(one.file.transfer->layout().chunk_blocks);
    }
    const bool known =
        std::all_of(all_.begin(), all_.end(), [](const OnePath& one) { return one.alone > 0; });
    together_.guarded([&] {
      for (OnePath& one : all_) {
        Transfer& transfer = *one.file.transfer;
        const double part = known ? one.alone / rates : 1 / static_cast<double>(all_.size());
        if (cut)
          one.fit.blocks = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(part * blocks), 1,
                                                     transfer.layout().chunk_blocks);
        transfer.tell(one.fit);
        transfer.shorten(one.fit.blocks);
      }
      at_once([&](OnePath& one) { one.file.transfer->lay_out(seconds); });
    });
  }

  void prepare() {
    for (OnePath& one : all_) one.file.transfer->prepare(write_);
  }

  void measure(double setup_s) {
    std::uint64_t runs = 0;
    Operation operation;
    operation.sync = [&] { prepare(); };
    operation.run = [&](std::uint64_t k) {
      for (std::uint64_t i = 0; i < k; ++i) {
        if (i > 0) prepare();  // in a warm-up
        at_once([&](OnePath& one) {
          one.file.transfer->move(write_);
          if (write_) one.file.transfer->sync();
        });
      }
      runs += k;
    };
    if (!write_)
      operation.verify = [&](std::size_t) {
        for (OnePath& one : all_)
          evidence_.verified += static_cast<double>(one.file.transfer->verify(share_of_path()));
      };
    SamplingPlan plan = context_.sampling(case_.seconds);
    plan.repetitions = 1;
    std::vector<std::string> paths;
    for (const OnePath& one : all_) paths.push_back(one.file.where);
    const StorageMeter meter(write_, paths);
    const DeviceMeter disks(paths, context_.node);
    series_ = sample(together_.wrap(operation), together_.wrap(plan));
    evidence_.moved = meter.moved();
    evidence_.device_moved = disks.moved(write_);
    evidence_.asked = static_cast<double>(runs) * chunk_bytes();
    for (OnePath& one : all_) {
      Transfer& transfer = *one.file.transfer;
      const double begin = now_s();
      if (write_)
        together_.guarded([&] {
          const double stored = transfer.evict();
          evidence_.verified += stored * static_cast<double>(transfer.verify_written(share_of_path()));
        });
      series_.verify_s += now_s() - begin;
      if (!write_) evidence_.resident = std::max(evidence_.resident, transfer.resident_share());
      together_.guarded([&] { transfer.close(); });
      Evidence found;
      found.take(one.log);
      evidence_.add(found);
    }
    context_.record.add_time(setup_s + series_.warmup_s, series_.timed_s, series_.verify_s);
  }

  /// Of the time of the case, for the verification of one path after the other.
  double share_of_path() const { return verify_share / static_cast<double>(all_.size()); }

  /// Of this rank, in all paths.
  double chunk_bytes() const {
    double bytes = 0;
    for (const OnePath& one : all_)
      if (one.file.transfer) bytes += static_cast<double>(one.file.transfer->chunk_bytes());
    return bytes;
  }

  /// B/s of the node as this run has measured the path alone, on its first rank. Not where all paths together
  /// are held to the rate that each alone is held to.
  std::optional<double> alone(std::size_t path) const {
    const auto rates = site_.alone.find(write_ ? "write" : "read");
    if (context_.config.options.has("storage.limit") || rates == site_.alone.end()) return std::nullopt;
    const auto rate = rates->second.find(path);
    return rate == rates->second.end() ? std::nullopt : std::optional(rate->second);
  }

  void report() {
    const double bytes = chunk_bytes(), ranks = context_.node.size();
    CaseRecord::Row* row = report_node(series_, static_cast<std::uint64_t>(bytes), evidence_,
                                       all_.front().file.where, case_, context_);
    if (row == nullptr || !row->values.contains("bandwidth")) return;
    double slowest_s = 0;  // of a sample of the node in one path; infinite where that is not known
    for (const OnePath& one : all_)
      slowest_s =
          std::max(slowest_s, static_cast<double>(one.file.transfer->chunk_bytes()) * ranks / one.alone);
    if (std::isfinite(slowest_s))
      row->values["of_alone"] = {slowest_s * median(row->values["bandwidth"]) / (bytes * ranks)};
  }

  const Case& case_;
  Context& context_;
  const Site& site_;
  bool write_;
  int entity_;
  Together together_;
  std::list<OnePath> all_;
  SampleSeries series_;
  Evidence evidence_;
};

}  // namespace

void run_together(const Case& c, Context& context, const Site& site) { TogetherCase(c, context, site).run(); }

}  // namespace assay::storage
