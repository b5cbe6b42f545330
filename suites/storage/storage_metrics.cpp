// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/storage_metrics.hpp"

#include "suites/storage/word.hpp"

namespace assay::storage {
namespace {

using results::Better;
using results::MetricSpec;
using results::Role;

/// What every case counts of wrong data.
std::vector<MetricSpec> with_damage(std::vector<MetricSpec> metrics) {
  metrics.push_back(
      {"errors", "count", Better::lower, true, Role::metric, false, "words with a wrong value"});
  metrics.push_back(
      {"flipped", "count", Better::none, false, Role::covariate, false, "of these: up to 8 bits differ"});
  metrics.push_back({"stale", "count", Better::none, false, Role::covariate, false,
                     "of these: a whole block of an older generation"});
  metrics.push_back({"torn", "count", Better::none, false, Role::covariate, false,
                     "of these: a part of a block of an older generation"});
  metrics.push_back({"misdirected", "count", Better::none, false, Role::covariate, false,
                     "of these: words of another offset or file"});
  metrics.push_back({"short", "count", Better::none, false, Role::covariate, false,
                     "of these: words that were not delivered"});
  metrics.push_back({"foreign", "count", Better::none, false, Role::covariate, false,
                     "of these: nothing that this run wrote"});
  metrics.push_back({"verified", "1", Better::none, false, Role::covariate, false,
                     "bytes that were compared as a fraction of those timed"});
  return metrics;
}

/// Whether the storage was met.
std::vector<MetricSpec> proof() {
  return {{"resident_share", "1", Better::none, false, Role::covariate, false,
           "largest share of a chunk that was in the page cache before it was read"},
          {"moved_share", "1", Better::none, false, Role::covariate, false,
           "bytes that the kernel moved to or from storage / bytes asked for"},
          {"device_share", "1", Better::none, false, Role::covariate, false,
           "bytes that the disks of the node counted / bytes asked for"}};
}
std::vector<MetricSpec> with_proof(std::vector<MetricSpec> metrics) {
  for (auto& m : proof()) metrics.push_back(std::move(m));
  return metrics;
}

MetricSpec link_rate() {
  return {"link_rate",
          "B/s",
          Better::none,
          false,
          Role::covariate,
          false,
          "PCIe or SATA links of solid-state disks, or the interface to the server"};
}

/// A rate of storage where the kernel's counters prove it, else under another name that judges nothing.
std::vector<MetricSpec> rate(const std::string& direction) {
  MetricSpec bandwidth{
      "bandwidth",
      "B/s",
      Better::higher,
      false,
      Role::metric,
      true,
      "bytes " + direction + " by all ranks of a node / time from the first start to the last end"};
  bandwidth.typical = 2e9;
  return with_proof({bandwidth,
                     {"bandwidth_cached", "B/s", Better::higher, false, Role::covariate, true,
                      "the same where less than 95 % of the bytes reached the storage: a rate of caches"}});
}

std::vector<MetricSpec> with_link(std::vector<MetricSpec> metrics) {
  metrics.push_back(link_rate());
  return metrics;
}

/// The same of several disks at once.
std::vector<MetricSpec> rate_together(const std::string& direction) {
  auto all = rate(direction);
  all.push_back({"of_alone", "1", Better::higher, false, Role::covariate, false,
                 "time that the slowest of the disks takes alone / time of all at once"});
  return all;
}

/// The same between files and GPUs.
std::vector<MetricSpec> gpu_rate(const std::string& direction) {
  auto all = rate(direction);
  all.push_back({"bandwidth_compat", "B/s", Better::higher, false, Role::covariate, true,
                 "the same through host memory: cuFile's compatibility mode"});
  all.push_back({"bandwidth_unproven", "B/s", Better::higher, false, Role::covariate, true,
                 "the same where nothing shows that the data bypass host memory"});
  all.push_back({"direct_share", "1", Better::none, false, Role::covariate, false,
                 "bytes that nvidia-fs moved on the node / bytes asked for"});
  return all;
}

/// The same of a directory that all nodes share.
std::vector<MetricSpec> shared_rate(const std::string& direction) {
  auto all = rate(direction);
  all.push_back({"bandwidth_all", "B/s", Better::higher, false, Role::covariate, true,
                 "bytes of all nodes together / longest time of a rank"});
  return all;
}

/// Operations a second, and the distribution of how long one takes.
std::vector<MetricSpec> operations(const std::string& what) {
  MetricSpec rate{
      "rate", "op/s", Better::higher, false, Role::metric, true, "random " + what + " of 4 KiB in a second"};
  rate.typical = 1e5;
  const auto latency = [&](const char* name, const std::string& share, Role role) {
    return MetricSpec{name,
                      "s",
                      Better::lower,
                      false,
                      role,
                      false,
                      share + " of the " + what + " took at most this long, to 1.6 %"};
  };
  return with_proof({rate,
                     {"rate_cached", "op/s", Better::higher, false, Role::covariate, true,
                      "the same where less than 95 % of the bytes reached the storage: a rate of caches"},
                     latency("latency_p50", "half", Role::covariate),
                     latency("latency_p99", "99 %", Role::covariate),
                     latency("latency_p999", "99.9 %", Role::covariate)});
}

/// What is done with small files, a second.
std::vector<MetricSpec> small_files() {
  const auto rate = [](const char* name, Role role, const char* what) {
    MetricSpec spec{name, "op/s", Better::higher, false, role, true, what};
    if (spec.name == "create") spec.typical = 1e4;
    return spec;
  };
  return {rate("create", Role::metric, "files of 3901 bytes created by all ranks of a node in a second"),
          rate("stat", Role::covariate, "stat calls; a cache may answer"),
          rate("read", Role::covariate, "files opened and read; a cache may answer"),
          rate("rename", Role::metric, "files renamed"), rate("delete", Role::metric, "files deleted")};
}

constexpr double usual_rate = 2e9;

/// One file through MPI-IO.
std::vector<MetricSpec> through_mpi() {
  auto all = storage_rates("write", "bytes written and synced by all ranks of a node / time", usual_rate);
  for (auto& m : storage_rates("read", "bytes of other ranks read by all ranks of a node / time", usual_rate))
    all.push_back(m);
  return with_proof(std::move(all));
}

/// A client of storage and one of its servers.
std::vector<MetricSpec> of_servers() {
  auto all = storage_rates(
      "write", "bytes written and synced by one rank of the node to a file on the server / time", usual_rate);
  for (auto& m : storage_rates("read", "bytes read back by it / time", usual_rate)) all.push_back(m);
  all.push_back({"round", "count", Better::none, false, Role::covariate, true,
                 "round of disjoint pairs in which a sample was taken"});
  return with_proof(std::move(all));
}

/// Shares of a model's state.
std::vector<MetricSpec> checkpoints() {
  const auto time = [](const char* name, const char* what) {
    return MetricSpec{name, "s", Better::lower, false, Role::covariate, false, what};
  };
  auto all = storage_rates("write",
                           "state of a node / time from the creation of the first file until the last one is "
                           "synced and renamed",
                           usual_rate);
  for (auto& m : storage_rates("restore", "state of a node, written by others, read", usual_rate))
    all.push_back(m);
  all.push_back(time("write_time", "median time of this rank's writes"));
  all.push_back(time("restore_time", "median time of this rank's reads"));
  all.push_back(time("step_alone", "median time of a training step without checkpoints"));
  all.push_back(time("step_during", "the same while checkpoints are written"));
  all.push_back(
      {"step_cost", "1", Better::lower, false, Role::covariate, false,
       "what a checkpoint beside training costs a step: mean ratio of the steps during one to those "
       "before and after it - 1"});
  for (const char* end : {"step_cost_low", "step_cost_high"})
    all.push_back({end, "1", Better::lower, false, Role::covariate, false,
                   "end of the 95 % interval of step_cost; an interval with 0 in it shows no cost"});
  return with_proof(std::move(all));
}

/// Records that feed training steps.
std::vector<MetricSpec> feeding() {
  MetricSpec records{
      "records",
      "op/s",
      Better::higher,
      false,
      Role::metric,
      true,
      "records of 4 KiB to 1 MiB that reach training steps of all ranks of a node in a second"};
  records.typical = 2e3;
  return with_proof({records,
                     {"records_cached", "op/s", Better::higher, false, Role::covariate, true,
                      "the same where less than 95 % of the bytes reached the storage: a rate of caches"},
                     {"stalled", "1", Better::lower, false, Role::covariate, true,
                      "largest share of a rank's time in which its step waited for records"},
                     {"bandwidth_read", "B/s", Better::higher, false, Role::covariate, false,
                      "bytes of these records / time"}});
}

/// A mount and its disks.
std::vector<MetricSpec> places() {
  const auto fact = [](const char* name, const char* unit, const char* what) {
    return MetricSpec{name, unit, Better::none, false, Role::covariate, false, what};
  };
  return {fact("total", "B", "size of the file system"),
          fact("free", "B", "what users may write of it"),
          fact("free_inodes", "count", "files that can be made"),
          link_rate(),
          fact("temperature", "K", "of the hottest of its disks"),
          fact("percentage_used", "1", "rated life used, of the most worn disk"),
          fact("unsafe_shutdowns", "count", "of its NVMe disks"),
          fact("media_errors", "count", "of its disks, not corrected")};
}

}  // namespace

const Metrics& metrics() {
  const results::Judging storage{results::MetricClass::storage, 0.1, 1};
  static const Metrics all{
      {"write", "local-write-<path>", storage, with_damage(rate("written and synced"))},
      {"read", "local-read-<path>", storage, with_damage(with_link(rate("read")))},
      {"together-write", "local-write-together", storage, with_damage(rate_together("written and synced"))},
      {"together-read", "local-read-together", storage, with_damage(rate_together("read"))},
      {"gds-write", "gds-write-<path>", storage, with_damage(gpu_rate("written from GPUs and synced"))},
      {"gds-read", "gds-read-<path>", storage, with_damage(gpu_rate("read into GPUs"))},
      {"shared-easy-write", "shared-easy-write-<path>", storage,
       with_damage(shared_rate("written and synced"))},
      {"shared-easy-read", "shared-easy-read-<path>", storage, with_damage(shared_rate("read"))},
      {"shared-hard-write", "shared-hard-write-<path>", storage,
       with_damage(shared_rate("written and synced"))},
      {"shared-hard-read", "shared-hard-read-<path>", storage, with_damage(shared_rate("read"))},
      {"metadata", "metadata-<own|one>-<path>", storage, with_damage(small_files())},
      {"checkpoint", "checkpoint-<path>", storage, with_damage(checkpoints())},
      {"place", "place-<before|after>-<path>", storage, places()},
      {"mpiio", "mpiio-<collective|independent>-<path>", storage, with_damage(through_mpi())},
      {"hdf5", "hdf5-<collective|independent>-<path>", storage, with_damage(through_mpi())},
      {"servers", "servers-<path>", storage, with_damage(of_servers())},
      {"feed", "feed-<path>", storage, with_damage(feeding())},
      {"random-write", "local-random-write-q<depth>-<path>", storage, with_damage(operations("writes"))},
      {"random-read", "local-random-read-q<depth>-<path>", storage, with_damage(operations("reads"))}};
  return all;
}

}  // namespace assay::storage
