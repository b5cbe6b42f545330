// SPDX-License-Identifier: Apache-2.0
// Which directories are measured as shared by all nodes: those on network file systems, unless told
// otherwise.
#include "suites/storage/storage_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "base/error.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/storage_suite.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay {
namespace {

Config config_of(const std::string& paths, const std::string& cache = "", Level level = Level::quick) {
  const StorageSuite suite;
  std::map<std::string, std::vector<std::string>> given{{"storage.paths", {paths}}};
  if (!cache.empty()) given["storage.cache"] = {cache};
  Config config = fakes::config_of(suite, level, given);
  for (const OptionSpec& spec : suite.options())
    if (!given.contains(spec.name) && spec.default_text.empty()) config.options.set(spec, {});
  return config;
}

/// What is planned where one rank found `found` to be on NFS.
std::vector<Case> cases_of(const std::string& paths, const std::string& found,
                           const std::string& cache = "") {
  const Config config = config_of(paths, cache);
  Topology topology = fakes::cluster({4, 2, 1, 1});
  if (!found.empty()) topology.lacks["a local mount of " + found] = "node1: it is nfs4 of srv:/export";
  return storage::plan_cases({config, topology, 1U << 30, 1});
}
std::set<std::string> operations(const std::string& paths, const std::string& found) {
  std::set<std::string> names;
  for (const Case& c : cases_of(paths, found)) names.insert(c.operation);
  return names;
}

TEST(StoragePlan, ADirectoryOnANetworkFileSystemIsShared) {
  EXPECT_TRUE(operations("/data", "/data").contains("shared-easy-read"));
  EXPECT_FALSE(operations("/data", "/data").contains("random-read"));
  EXPECT_FALSE(operations("/data", "").contains("shared-easy-read"));
  EXPECT_TRUE(operations("/data", "").contains("random-read"));
  EXPECT_FALSE(operations("/data", "/other").contains("shared-easy-read"));
}

TEST(StoragePlan, WhatIsSaidComesBeforeWhatIsFound) {
  EXPECT_FALSE(operations("local:/data", "/data").contains("shared-easy-read"));
  EXPECT_TRUE(operations("shared:/data", "").contains("shared-easy-read"));
  EXPECT_THROW(operations("local:data", ""), Error);
  EXPECT_THROW(operations("local:/data,shared:/data", ""), Error);
}

TEST(StoragePlan, AllRatesOfSharedDirectoriesAreComparedWithTheCachesOfServers) {
  for (const Case& c : cases_of("/a,shared:/b", "", "1GiB")) {
    const bool described = c.operation == "place" || c.operation == "metadata";
    const bool compared = c.parameters.contains("server_cache_twice");
    EXPECT_EQ(compared, c.parameters.at("path") == "/b" && !described) << c.name;
    if (compared) {
      EXPECT_EQ(c.parameters["server_cache_twice"], 2ULL << 30) << c.name;
    }
  }
}

TEST(StoragePlan, LocalPathsAreAlsoMeasuredTogetherInTheSameTime) {
  const auto write_seconds = [](const std::string& paths) {
    double seconds = 0;
    for (const Case& c : cases_of(paths, ""))
      if (c.operation == "write" || c.operation == "together-write") seconds += c.seconds;
    return seconds;
  };
  EXPECT_FALSE(operations("/a", "").contains("together-read"));
  EXPECT_FALSE(operations("/a,shared:/b", "").contains("together-read"));
  const auto all = operations("/a,/b,/c", "");
  EXPECT_TRUE(all.contains("together-read") && all.contains("together-write"));
  EXPECT_NEAR(write_seconds("/a,/b,/c"), write_seconds("/a"), 1e-9);
  EXPECT_NEAR(write_seconds("/a,/b,shared:/c"), write_seconds("/a") * 2 / 3, 1e-9);
  for (const Case& c : cases_of("/a,shared:/b,/c", "")) {
    if (c.operation == "together-read") {
      EXPECT_EQ(c.parameters.at("path"), "/a,/c");
    } else if (c.operation == "read") {
      EXPECT_LT(c.stage, Stage::groups) << "measured before they are compared";
    }
  }
}

TEST(StoragePlan, ALevelTakesItsTimeWhateverThePathsAre) {
  const std::map<Level, double> most_s{{Level::smoke, 3}, {Level::quick, 30}, {Level::standard, 60}};
  for (const auto& [level, most] : most_s)
    for (const char* paths : {"/a", "shared:/a", "/a,/b", "/a,shared:/b", "shared:/a,shared:/b"}) {
      const Config config = config_of(paths, "", level);
      double seconds = 0;
      for (const Case& c : storage::plan_cases({config, fakes::cluster({4, 2, 1, 1}), 1U << 30, 1}))
        if (c.not_applicable.empty()) seconds += c.seconds + c.overhead_seconds;
      EXPECT_GT(seconds, most / 2) << paths;
      EXPECT_LE(seconds, most) << paths;
    }
}

TEST(StoragePlan, TypesOfNetworkFileSystems) {
  for (const char* type : {"nfs", "nfs4", "lustre", "beegfs", "gpfs", "cifs", "fuse.sshfs", "fuse.juicefs"})
    EXPECT_TRUE(storage::is_network(type)) << type;
  for (const char* type : {"ext4", "xfs", "zfs", "tmpfs", "overlay", "fuse.ntfs-3g", ""})
    EXPECT_FALSE(storage::is_network(type)) << type;
  EXPECT_TRUE(StorageSuite().lacks(config_of("/"), false).count("a local mount of /") == 0);
}

}  // namespace
}  // namespace assay
