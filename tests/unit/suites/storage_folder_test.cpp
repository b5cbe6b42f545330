// SPDX-License-Identifier: Apache-2.0
// Where the storage suite writes, what it leaves, and what of dead runs it removes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/child_process.hpp"
#include "base/error.hpp"
#include "suite/folder_owner.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/local_file.hpp"

namespace assay::storage {
namespace {

namespace fs = std::filesystem;
constexpr const char* run = "0123456789abcdef";

class StorageFolder : public testing::Test {
 protected:
  StorageFolder() {
    std::string name = (fs::temp_directory_path() / "assay-folder-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~StorageFolder() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir_), {}));
  }

  fs::path dir_;
};

TEST_F(StorageFolder, IsGoneWithItsFiles) {
  {
    Folder folder(dir_, run);
    EXPECT_EQ(entries(), 1u);
    const Descriptor stays = folder.create("a", false, false), vanishes = folder.create("b", false, true);
    EXPECT_TRUE(fs::exists(folder.path() + "/data-a"));
    EXPECT_FALSE(fs::exists(folder.path() + "/data-b"));
    EXPECT_EQ(::pwrite(vanishes.get(), "x", 1, 0), 1);
    EXPECT_THROW(folder.create("a", false, false), Error) << "a file that exists is not opened";
    EXPECT_EQ(Folder(dir_, run).path(), folder.path() + "-1") << "never the same directory twice";
    EXPECT_NE(folder.path().find(run), std::string::npos);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StorageFolder, FilesAreNotDirectWhereTransfersAreRefused) {
  Folder folder(dir_, run);
  std::string why;
  if (!folder.create("probe", true, true)) GTEST_SKIP() << "no privilege: no O_DIRECT in " << dir_;
  EXPECT_TRUE(create_direct(folder, "a", false, 1 << 20, why)) << why;
  EXPECT_TRUE(fs::exists(folder.path() + "/data-a"));
  EXPECT_EQ(fs::file_size(folder.path() + "/data-a"), 0u) << "nothing of the trial stays";
  const Descriptor odd = create_direct(folder, "b", false, 1000, why);
  if (odd) GTEST_SKIP() << "no privilege: " << dir_ << " takes any request";
  EXPECT_EQ(why, "write of 1000 bytes: Invalid argument");
  EXPECT_FALSE(fs::exists(folder.path() + "/data-b")) << "for the file that goes through the page cache";
}

TEST_F(StorageFolder, LeavesWhatIsNotItsOwn) {
  {
    const Folder folder(dir_, run);
    std::ofstream(folder.path() + "/mine.txt") << "x";
  }
  EXPECT_EQ(entries(), 1u) << "a file of somebody else keeps the directory";
  const auto stayed = Folder::what_stayed();
  ASSERT_EQ(stayed.size(), 1u);
  EXPECT_NE(stayed[0].find("cannot remove: Directory not empty"), std::string::npos) << stayed[0];
  EXPECT_NO_THROW(Folder(dir_, run)) << "the next case goes on beside it";
  EXPECT_EQ(entries(), 1u);
  EXPECT_TRUE(Folder::what_stayed().empty());
}

TEST_F(StorageFolder, FollowsNoLinkOut) {
  const fs::path outside = dir_ / "outside";
  fs::create_directory(outside);
  std::ofstream(outside / "data-precious") << "x";
  FolderOwner dead = FolderOwner::self("storage", run);
  dead.pid = 999999999;
  fs::create_symlink(outside, dir_ / dead.name());
  EXPECT_EQ(remove_leftovers(dir_), 0);
  EXPECT_TRUE(fs::exists(outside / "data-precious"));
  fs::create_symlink(outside, dir_ / FolderOwner::self("storage", run).name());
  EXPECT_EQ(Folder(dir_, run).path(), (dir_ / FolderOwner::self("storage", run).name()).string() + "-1")
      << "the name is taken by a link";
  fs::remove(dir_ / FolderOwner::self("storage", run).name());
  Folder folder(dir_, run);
  fs::create_symlink(outside / "new", fs::path(folder.path()) / "data-x");
  EXPECT_THROW(folder.create("x", false, false), Error);
  EXPECT_FALSE(fs::exists(outside / "new"));
  fs::remove(fs::path(folder.path()) / "data-x");
}

TEST_F(StorageFolder, RefusesAFileSystemThatIsNotTheOneOfTheStart) {
  const auto here = file_system_of(dir_), elsewhere = file_system_of("/proc");
  ASSERT_TRUE(here && elsewhere);
  EXPECT_EQ(elsewhere->type, "proc");
  EXPECT_NO_THROW(Folder(dir_, run, here));
  EXPECT_THROW(Folder(dir_, run, elsewhere), Error);
  EXPECT_EQ(entries(), 0u) << "nothing is made beneath a mount that is gone";
  EXPECT_EQ(what_changed(dir_, *here), "");
  const std::string said = what_changed(dir_, *elsewhere);
  EXPECT_NE(said.find(dir_.string() + ": lies in " + here->text()), std::string::npos) << said;
  EXPECT_NE(said.find("lay in proc of proc"), std::string::npos) << said;
  EXPECT_EQ(what_changed(dir_ / "absent", *here), "");
}

TEST(StorageFileSystems, ANetworkFileSystemMayBeMountedAgain) {
  const FileSystem nfs{makedev(0, 40), "nfs4", "filer:/export"};
  EXPECT_TRUE(is_same(nfs, {makedev(0, 41), "nfs4", "filer:/export"}));
  EXPECT_FALSE(is_same(nfs, {makedev(0, 40), "nfs4", "other:/export"}));
  EXPECT_FALSE(is_same(nfs, {makedev(8, 1), "ext4", "/dev/sda1"}));
  EXPECT_FALSE(is_same({makedev(0, 50), "tmpfs", "none"}, {makedev(0, 51), "tmpfs", "none"}));
}

TEST_F(StorageFolder, RefusesWhatIsNoDirectory) {
  std::ofstream(dir_ / "file") << "x";
  EXPECT_THROW(Folder(dir_ / "file", run), Error);
  EXPECT_THROW(Folder(dir_ / "absent", run), Error);
}

/// A child makes a directory with a file in it and is killed at once, at some instant.
TEST_F(StorageFolder, AfterKillsNothingStaysWithTheNextStart) {
  for (int i = 0; i < 100; ++i) {
    ChildProcess child("a writer", [&]() -> int {
      for (;;) {
        Folder folder(dir_, run);
        const Descriptor a = folder.create("a", false, false), b = folder.create("b", false, true);
        for (int n = 0; n < 20; ++n) (void)!::pwrite(a.get(), "0123456789abcdef", 16, 16 * n);
      }
    });
    ::usleep(static_cast<useconds_t>(100 + 37 * i));
    child.kill(SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
    remove_leftovers(dir_);  // the child is dead, and still in the table of processes
    child.wait();
    ASSERT_EQ(entries(), 0u) << "kill " << i;
  }
}

TEST_F(StorageFolder, LeftoversOfTheLivingAndOfOthersStay) {
  const Folder alive(dir_, run);
  FolderOwner other = FolderOwner::self("storage", run);
  other.host = "elsewhere";
  fs::create_directory(dir_ / other.name());
  FolderOwner caged = FolderOwner::self("storage", run);
  caged.pid_namespace = "1";
  caged.pid = 999999999;
  fs::create_directory(dir_ / caged.name());
  FolderOwner namesake = FolderOwner::self(
      "storage",
      run);  // a machine of the same name, started at another time: its directory is younger than our boot
  namesake.boot = "00000000";
  fs::create_directory(dir_ / namesake.name());
  fs::create_directory(dir_ / "assay-storage-of-a-user");
  EXPECT_EQ(remove_leftovers(dir_), 0);
  EXPECT_EQ(entries(), 5u);
  const timespec before[2] = {{1000000, 0}, {1000000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / namesake.name()).c_str(), before, 0), 0);
  EXPECT_EQ(remove_leftovers(dir_), 1) << "older than the boot";
}

/// On NFS a file that is removed while it is open gets a name like .nfs000000000001; a crash of the client
/// leaves it.
TEST_F(StorageFolder, WhatACrashLeavesOnNfsGoesWithTheNextStart) {
  FolderOwner dead = FolderOwner::self("storage", run);
  dead.pid = 999999999;
  const fs::path left = dir_ / dead.name();
  fs::create_directory(left);
  for (const char* name : {"data-000000", ".nfs000000000001"}) std::ofstream(left / name) << "x";
  EXPECT_EQ(remove_leftovers(dir_), 1);
  EXPECT_EQ(entries(), 0u);
  EXPECT_TRUE(Folder::what_stayed().empty());
}

TEST_F(StorageFolder, OpenFilesOfTheLivingOnNfsStay) {
  std::string path;
  {
    const Folder folder(dir_, run);
    path = folder.path();
    std::ofstream(path + "/.nfs000000000001") << "x";
  }
  EXPECT_TRUE(fs::exists(path + "/.nfs000000000001")) << "its client removes it when it is closed";
  EXPECT_EQ(Folder::what_stayed().size(), 1u);
}

TEST_F(StorageFolder, LeftoversThatCannotBeRemovedAreTold) {
  FolderOwner dead = FolderOwner::self("storage", run);
  dead.pid = 999999999;
  fs::create_directory(dir_ / dead.name());
  std::ofstream(dir_ / dead.name() / "mine.txt") << "x";
  EXPECT_EQ(remove_leftovers(dir_), 0);
  const auto stayed = Folder::what_stayed();
  ASSERT_EQ(stayed.size(), 1u);
  EXPECT_EQ(stayed[0], (dir_ / dead.name()).string() + ": cannot remove: Directory not empty");
}

TEST(StorageOwner, NameIsReadBack) {
  const FolderOwner self = FolderOwner::self("storage", run);
  EXPECT_EQ(FolderOwner::parse("storage", self.name()).name(), self.name());
  FolderOwner second = self;
  second.number = 2;
  EXPECT_EQ(second.name(), self.name() + "-2");
  EXPECT_EQ(FolderOwner::parse("storage", second.name()).name(), second.name());
  EXPECT_EQ(FolderOwner::parse("storage", self.name() + "-x").pid, 0);
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_GT(self.start, 0u);
  for (const char* text :
       {"", "assay-storage-", "assay-storage-a-b-c-1-2", "assay-storage-a-b-c-x-2-0123456789abcdef",
        "assay-storage-a-b-c-1-2-0123456789abcdeg", "assay-storage-a-b-c-1-2-3-0123456789abcdef"})
    EXPECT_EQ(FolderOwner::parse("storage", text).pid, 0) << text;
}

TEST(StorageSpace, ReserveIsKept) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  EXPECT_EQ(reserve_bytes(10 * gib), 5 * gib);
  EXPECT_EQ(reserve_bytes(1000 * gib), 100 * gib);
  EXPECT_EQ(allowance({1000 * gib, 500 * gib}, 0), 50 * gib);
  EXPECT_EQ(allowance({1000 * gib, 500 * gib}, 7 * gib), 7 * gib);
  EXPECT_EQ(allowance({1000 * gib, 103 * gib}, 7 * gib), 3 * gib) << "never into the reserve";
  EXPECT_EQ(allowance({1000 * gib, 99 * gib}, 7 * gib), 0u) << "less than a tenth is left";
  EXPECT_EQ(allowance({0, 0}, gib), gib) << "it tells no size, and --storage.space does";
  EXPECT_EQ(allowance({0, 0}, 0), 0u);
  EXPECT_EQ(allowance({20 * gib, 4 * gib}, gib), 0u) << "less than 5 GiB are left";
}

TEST(StorageSpace, FilesAreMadeOfInodesThatMayBeTaken) {
  EXPECT_EQ(file_allowance({1000, 700}), 600u);
  EXPECT_EQ(file_allowance({1000, 100}), 0u) << "a tenth is left";
  EXPECT_EQ(file_allowance({1000, 99}), 0u);
  EXPECT_EQ(file_allowance({0, 0}), std::numeric_limits<std::uint64_t>::max()) << "it tells no number";
  EXPECT_EQ(allowed_files("/scratch", {1000, 700}, 8), 75u);
  EXPECT_EQ(allowed_files("/scratch", {1000, 108}, 8), 1u);
  try {
    allowed_files("/scratch", {1000, 107}, 8);
    FAIL() << "seven files for eight ranks";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::resource);
    EXPECT_NE(std::string(e.what()).find(
                  ": /scratch: 107 of 1000 inodes are free, 100 must stay so: too few for 8 ranks"),
              std::string::npos)
        << e.what();
  }
}

TEST_F(StorageFolder, TellsTheInodesOfItsFileSystem) {
  struct statvfs info {};
  ASSERT_EQ(::statvfs(dir_.c_str(), &info), 0);
  const Folder folder(dir_, run);
  EXPECT_EQ(folder.inodes().total, info.f_files);
}

}  // namespace
}  // namespace assay::storage
