// SPDX-License-Identifier: Apache-2.0
// What is read back of a file that was written, and where from.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/cold.hpp"
#include "suite/space.hpp"
#include "suite/work_on_files.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/sequential.hpp"
#include "suites/storage/storage_suite.hpp"
#include "suites/storage/transfer.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/gemm_memory_fakes.hpp"

namespace assay::storage {
namespace {

constexpr std::uint64_t block_bytes = 4096;

/// Notes where it reads, and how much of the file was in the page cache when it began to.
class NotingEngine final : public Engine {
 public:
  NotingEngine() : Engine(1), inner_(make_thread_engine(1)) {}
  std::string name() const override { return "noting"; }
  void run(bool write, std::span<Request> requests) override {
    for (const Request& r : requests) {
      if (write) continue;
      if (read.empty()) cached = resident_share(r.fd, 0, file_bytes).value_or(1.0);
      read.push_back(r.offset / block_bytes);
    }
    inner_->run(write, requests);
  }
  std::vector<std::uint64_t> read;  ///< blocks
  std::uint64_t file_bytes = 0;
  double cached = -1;

 private:
  std::unique_ptr<Engine> inner_;
};

/// A file that goes through the page cache, of chunks of two blocks.
class StorageTransfer : public testing::Test {
 protected:
  static constexpr Layout layout{block_bytes, 2, 4};

  static std::filesystem::path folder() { return std::filesystem::temp_directory_path(); }
  static Descriptor file_on_disk() {
    std::string name = (folder() / "assay-transfer-XXXXXX").string();
    Descriptor fd(::mkstemp(name.data()));
    ::unlink(name.c_str());
    return fd;
  }
  /// Where the page cache is all there is, nothing leaves it.
  static bool in_memory() { return mount_now(folder().string()).value_or(Mount{}).type == "tmpfs"; }

  void with(Descriptor fd, const Layout& of, const std::function<void(Transfer&, Context&)>& use) {
    StorageSuite suite;
    fakes::Bench bench(fakes::config_of(suite, Level::quick));
    engine_.file_bytes = of.end();
    bench.with(Case{}, [&](Context& context) {
      log_.emplace(Known{1, 1, 2, 0}, 0, context);
      Transfer transfer(std::move(fd), "a file", 0, of, engine_, *log_, context);
      use(transfer, context);
    });
  }
  static void write(Transfer& transfer, int chunks) {
    for (int i = 0; i < chunks; ++i) {
      transfer.prepare(true);
      transfer.move(true);
    }
  }

  /// A file of two ranks, of blocks as large as pages are at most.
  static constexpr Layout shared{64 << 10, 2, 4, 2, 0};
  /// Brings a block of it into the page cache, and keeps it there.
  static void map(const Transfer& transfer, std::uint64_t block) {
    void* const at = ::mmap(nullptr, shared.block_bytes, PROT_READ, MAP_SHARED, transfer.descriptor(),
                            static_cast<off_t>(block * shared.block_bytes));
    ASSERT_NE(at, MAP_FAILED);
    ::madvise(at, shared.block_bytes, MADV_RANDOM);  // no page beside those that are touched
    for (std::uint64_t i = 0; i < shared.block_bytes; i += 4096)
      (void)static_cast<const volatile char*>(at)[i];
  }

  NotingEngine engine_;
  std::optional<DamageLog> log_;
};

TEST_F(StorageTransfer, WhatWasWrittenLastIsReadBackFirstAndNothingElse) {
  with(file_on_disk(), layout, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    EXPECT_EQ(transfer.verify_written(1), 0u) << "nothing was timed";
    write(transfer, 2);
    EXPECT_EQ(transfer.verify_written(1), 2 * transfer.chunk_bytes());
    EXPECT_EQ(engine_.read, (std::vector<std::uint64_t>{2, 3, 0, 1}));
    engine_.read.clear();
  });
  with(file_on_disk(), layout, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    write(transfer, 7);
    EXPECT_EQ(transfer.verify_written(0), block_bytes) << "one at least";
    EXPECT_EQ(engine_.read, (std::vector<std::uint64_t>{4}));
    engine_.read.clear();
    EXPECT_EQ(transfer.verify_written(1), transfer.file_bytes());
    EXPECT_EQ(engine_.read, (std::vector<std::uint64_t>{4, 5, 2, 3, 0, 1, 6, 7}));
    Evidence evidence;
    evidence.take(*log_);
    EXPECT_EQ(evidence.damage, Evidence().damage);
  });
}

TEST_F(StorageTransfer, WhatStaysInThePageCacheIsNotReadFromStorage) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  with(file_on_disk(), layout, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    write(transfer, 4);
    ASSERT_GT(resident_share(transfer.descriptor(), 0, layout.end()).value_or(0), 0.95);
    EXPECT_GE(transfer.evict(), 0.95) << "of pages that were dirty";
    // The kernel lets go of no page that a process has mapped.
    void* const at =
        ::mmap(nullptr, layout.end(), PROT_READ, MAP_SHARED | MAP_POPULATE, transfer.descriptor(), 0);
    ASSERT_NE(at, MAP_FAILED);
    EXPECT_LE(transfer.evict(), 0.05);
    ::munmap(at, layout.end());
  });
}

TEST_F(StorageTransfer, OfASharedFileTheBlocksWrittenLastAreLookedAt) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  with(file_on_disk(), shared, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    write(transfer, 4);
    EXPECT_GE(transfer.evict(), 0.95);
    for (std::uint64_t block = 1; block < 14; block += 2) map(transfer, block);
    map(transfer, 0);
    EXPECT_GE(transfer.evict(), 0.95) << "blocks of the other rank, and of the first chunk";
    map(transfer, 12);
    EXPECT_NEAR(transfer.evict(), 0.5, 0.05);
    map(transfer, 14);
    EXPECT_LE(transfer.evict(), 0.05);
  });
}

TEST_F(StorageTransfer, OfASharedFileOnlyTheBlocksThatARankReadsCountAsResident) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  with(file_on_disk(), shared, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    EXPECT_GE(transfer.evict(), 0.95);
    Layout other = shared;
    other.rank = 1;
    map(transfer, 1);
    const int fd = transfer.descriptor();
    EXPECT_NEAR(resident_blocks(fd, other, 0, 1), 0.5, 0.05) << "the first of two";
    EXPECT_LE(resident_blocks(fd, other, 1, 1), 0.05);
    EXPECT_LE(resident_blocks(fd, shared, 0, 1), 0.05);
    EXPECT_NEAR(resident_blocks(fd, shared, 0, 1, shared.block_bytes), 0.5, 0.05) << "behind a header";
    EXPECT_EQ(resident_blocks(-1, shared, 0, 1), 1) << "where nothing tells";
  });
}

TEST_F(StorageTransfer, AFileIsSyncedInPieces) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  supervisor::Heartbeat heartbeat;
  with(file_on_disk(), {block_bytes, 1024, 4}, [&](Transfer& transfer, Context&) {
    const WorkOnFiles work(&heartbeat);
    transfer.lay_out(60);
    write(transfer, 4);
    const std::uint64_t before = heartbeat.calls;
    transfer.evict();
    EXPECT_GE(heartbeat.calls - before, 4U) << "of 4 MiB each";
  });
}

TEST_F(StorageTransfer, AFileInMemoryHasNoOtherStorage) {
  with(Descriptor(::memfd_create("assay", MFD_CLOEXEC)), layout, [&](Transfer& transfer, Context&) {
    transfer.lay_out(60);
    write(transfer, 1);
    EXPECT_EQ(transfer.evict(), 1);
  });
}

TEST_F(StorageTransfer, ASeriesOfWritesIsReadBackFromStorage) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  with(file_on_disk(), layout, [&](Transfer& transfer, Context& context) {
    transfer.lay_out(60);
    Case c;
    c.seconds = 0.05;
    c.parameters = {{"path", folder().string()}};
    Together together(context.node);
    Evidence evidence;
    sample_transfer(transfer, true, c, 0, *log_, together, context, evidence);
    together.rethrow();
    ASSERT_FALSE(engine_.read.empty());
    EXPECT_LE(engine_.cached, 0.05);
    EXPECT_GT(evidence.verified, 0);
  });
}

TEST_F(StorageTransfer, RandomBlocksThatWereWrittenAreReadBackFromStorage) {
  if (in_memory()) GTEST_SKIP() << "temporary files lie in memory here";
  const TemporaryFolder scratch;
  struct statvfs info {};
  ASSERT_EQ(::statvfs(scratch.path().c_str(), &info), 0);
  if (allowance(space_of(info), 16 << 20) == 0)
    GTEST_SKIP() << "no privilege: less than a tenth or 5 GiB are left for temporary files";
  StorageSuite suite;
  const Config config = fakes::config_of(suite, Level::quick,
                                         {{"storage.paths", {"local:" + scratch.path().string()}},
                                          {"storage.space", {"16MiB"}},
                                          {"storage.page-cache", {"through"}}});
  fakes::Bench bench(config);
  const auto cases = suite.plan({config, bench.topology(), 1u << 30, 7});
  fakes::SelfCommunicator world;
  suite.prepare(cases, config, bench.device, world, {});
  const auto before = moved_now();
  bench.run(suite, *fakes::find(cases, "local-random-write-q16-0"));
  const auto after = moved_now();
  ASSERT_TRUE(before && after);
  EXPECT_GE(after->read - before->read, 16 * block_bytes);
  EXPECT_GT(bench.record.rows_.at(0).values.at("verified").at(0), 0);
}

TEST_F(StorageTransfer, EachChunkOfAFileInThePageCacheIsSynced) {
  supervisor::Heartbeat heartbeat;
  with(file_on_disk(), layout, [&](Transfer& transfer, Context&) {
    const WorkOnFiles work(&heartbeat);
    transfer.lay_out(60);
    EXPECT_EQ(transfer.layout().chunks, layout.chunks);
    EXPECT_GE(heartbeat.calls, 2 * layout.chunks) << "each is written, and then stored";
  });
}

}  // namespace
}  // namespace assay::storage
