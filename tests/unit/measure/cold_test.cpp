// SPDX-License-Identifier: Apache-2.0
// What of a file is in the page cache, where the file is one of a file system on top of another one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/child_process.hpp"
#include "measure/cold.hpp"
#include "suites/storage/place.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay {
namespace {

constexpr int no_overlay = 77;

/// An overlay below `folder` that ends with this process; empty where it may not be mounted.
std::string mounted_overlay(const std::filesystem::path& folder) {
  for (const char* name : {"lower", "upper", "work", "merged"})
    std::filesystem::create_directory(folder / name);
  const std::string at = folder.string(), merged = at + "/merged";
  const std::string options = "lowerdir=" + at + "/lower,upperdir=" + at + "/upper,workdir=" + at + "/work";
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("overlay", merged.c_str(), "overlay", 0, options.c_str()) != 0)
    return "";
  return merged;
}

TEST(Cold, PagesOfAnOverlayAreThoseOfTheFileBeneath) {
  const TemporaryFolder folder;
  if (storage::mount_now(folder.path().string()).value_or(storage::Mount{}).type == "tmpfs")
    GTEST_SKIP() << "temporary files lie in memory here";
  ChildProcess child("a process with a mount of its own", [&] {
    const std::string overlay = mounted_overlay(folder.path());
    if (overlay.empty()) return no_overlay;
    const int fd = ::open((overlay + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const std::vector<char> data(1 << 20, 'x');
    if (::pwrite(fd, data.data(), data.size(), 0) != static_cast<ssize_t>(data.size())) return 1;
    if (resident_share(fd, 0, data.size()) != 1.0) return 2;
    if (::fsync(fd) != 0 || ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0) return 3;
    return resident_share(fd, 0, data.size()).value_or(1.0) <= 0.05 ? 0 : 4;
  });
  const int code = exit_code_of(child.wait());
  if (code == no_overlay) GTEST_SKIP() << "no privilege: overlays cannot be mounted";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace assay
