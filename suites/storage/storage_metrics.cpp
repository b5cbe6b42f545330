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
                     "bytes that were compared word by word as a fraction of those timed"});
  return metrics;
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
  return {bandwidth,
          {"bandwidth_cached", "B/s", Better::higher, false, Role::covariate, true,
           "the same where less than 95 % of the bytes reached the storage: a rate of caches"},
          {"resident_share", "1", Better::none, false, Role::covariate, false,
           "largest share of a chunk that was in the page cache before it was read"},
          {"moved_share", "1", Better::none, false, Role::covariate, false,
           "bytes that the kernel moved to or from storage / bytes asked for"}};
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
  return {rate,
          {"rate_cached", "op/s", Better::higher, false, Role::covariate, true,
           "the same where less than 95 % of the bytes reached the storage: a rate of caches"},
          latency("latency_p50", "half", Role::covariate),
          latency("latency_p99", "99 %", Role::covariate),
          latency("latency_p999", "99.9 %", Role::covariate),
          {"resident_share", "1", Better::none, false, Role::covariate, false,
           "largest share of a chunk that was in the page cache before it was read"},
          {"moved_share", "1", Better::none, false, Role::covariate, false,
           "bytes that the kernel moved to or from storage / bytes asked for"}};
}

/// What is done with small files, a second.
std::vector<MetricSpec> small_files() {
  const auto rate = [](const char* name, Role role, const char* what) {
    MetricSpec spec{name, "op/s", Better::higher, false, role, true, what};
    if (spec.name == "create") spec.typical = 1e4;
    return spec;
  };
  return {rate("create", Role::metric, "files of 3901 bytes created by all ranks of a node in a second"),
          rate("stat", Role::covariate, "files asked for; a cache may answer"),
          rate("read", Role::covariate, "files opened and read; a cache may answer"),
          rate("rename", Role::metric, "files renamed"), rate("delete", Role::metric, "files deleted")};
}

}  // namespace

const Metrics& metrics() {
  const results::Judging storage{results::MetricClass::storage, 0.1, 1};
  static const Metrics all{
      {"write", "local-write-<path>", storage, with_damage(rate("written and synced"))},
      {"read", "local-read-<path>", storage, with_damage(rate("read"))},
      {"shared-easy-write", "shared-easy-write-<path>", storage,
       with_damage(shared_rate("written and synced"))},
      {"shared-easy-read", "shared-easy-read-<path>", storage, with_damage(shared_rate("read"))},
      {"shared-hard-write", "shared-hard-write-<path>", storage,
       with_damage(shared_rate("written and synced"))},
      {"shared-hard-read", "shared-hard-read-<path>", storage, with_damage(shared_rate("read"))},
      {"metadata", "metadata-<own|one>-<path>", storage, with_damage(small_files())},
      {"random-write", "local-random-write-q<depth>-<path>", storage, with_damage(operations("writes"))},
      {"random-read", "local-random-read-q<depth>-<path>", storage, with_damage(operations("reads"))}};
  return all;
}

}  // namespace assay::storage
