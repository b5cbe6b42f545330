// SPDX-License-Identifier: Apache-2.0
// What is behind a directory, in made-up trees of sysfs.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "suites/storage/device_meter.hpp"
#include "suites/storage/folder.hpp"
#include "suites/storage/place.hpp"
#include "suites/storage/place_case.hpp"
#include "tests/support/temporary_folder.hpp"

namespace assay::storage {
namespace {

namespace fs = std::filesystem;

class StoragePlace : public testing::Test {
 protected:
  StoragePlace() {
    std::string name = (fs::temp_directory_path() / "assay-place-XXXXXX").string();
    root_ = fs::canonical(::mkdtemp(name.data()));
    fs::create_directories(root_ / "dev/block");
    fs::create_directories(root_ / "block");
  }
  ~StoragePlace() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  void link(const std::string& from, const std::string& to) const {
    fs::create_directories((root_ / from).parent_path());
    fs::create_symlink(root_ / to, root_ / from);
  }
  /// An NVMe disk with one partition, device numbers 259:n and 259:n+1.
  void nvme(int n, const std::string& firmware) const {
    const std::string name = "nvme" + std::to_string(n),
                      pci = "devices/pci0000:00/0000:0" + std::to_string(n) + ":00.0";
    put(pci + "/vendor", "0x144d");
    put(pci + "/class", "0x010802");
    put(pci + "/current_link_speed", "16.0 GT/s PCIe");
    put(pci + "/current_link_width", "4");
    put(pci + "/nvme/" + name + "/model", "ACME 4000    ");
    put(pci + "/nvme/" + name + "/firmware_rev", firmware);
    const std::string block = pci + "/nvme/" + name + "/" + name + "n1";
    put(block + "/size", "1");
    put(block + "/" + name + "n1p1/partition", "1");
    link(block + "/device", pci + "/nvme/" + name);
    link("dev/block/259:" + std::to_string(10 * n), block);
    link("dev/block/259:" + std::to_string(10 * n + 1), block + "/" + name + "n1p1");
  }

  fs::path root_;
};

TEST_F(StoragePlace, NvmeBelowPartitionAndRaid) {
  nvme(1, "A1");
  nvme(2, "A2");
  auto disks = disks_below(root_, 259, 11);
  ASSERT_EQ(disks.size(), 1u);
  EXPECT_EQ(disks[0].name, "nvme1n1");
  EXPECT_EQ(disks[0].model, "ACME 4000");
  EXPECT_EQ(disks[0].firmware, "A1");
  EXPECT_EQ(disks[0].link, "16.0 GT/s x4");
  EXPECT_NEAR(disks[0].link_rate, 7.877e9, 1e6);
  put("devices/virtual/block/md0/size", "1");
  for (const char* n : {"1", "2"}) {
    const std::string d = std::string("nvme") + n;
    link("devices/virtual/block/md0/slaves/" + d + "n1p1",
         std::string("devices/pci0000:00/0000:0") + n + ":00.0/nvme/" + d + "/" + d + "n1/" + d + "n1p1");
  }
  link("dev/block/9:0", "devices/virtual/block/md0");
  disks = disks_below(root_, 9, 0);
  EXPECT_EQ(disks.size(), 2u);
  EXPECT_NEAR(link_rate_below(root_, 9, 0, disks), 7.877e9, 1e6) << "a file may be on one of them alone";
  put("devices/virtual/block/md0/md/level", "raid0");
  EXPECT_NEAR(link_rate_below(root_, 9, 0, disks), 2 * 7.877e9, 1e6);
  disks[0].link_rate = std::nan("");
  EXPECT_TRUE(std::isnan(link_rate_below(root_, 9, 0, disks)));
  EXPECT_TRUE(std::isnan(link_rate_below(root_, 0, 40, {})));
  EXPECT_TRUE(disks_below(root_, 0, 40).empty());
}

TEST_F(StoragePlace, AllDisksOfABtrfsAreBeneathIt) {
  for (const int n : {1, 2, 3}) nvme(n, "A1");
  const auto partition = [](int n) {
    return fmt::format("devices/pci0000:00/0000:0{0}:00.0/nvme/nvme{0}/nvme{0}n1/nvme{0}n1p1", n);
  };
  link("fs/btrfs/8d30ff48/devices/nvme1n1p1", partition(1));
  link("fs/btrfs/8d30ff48/devices/nvme3n1p1", partition(3));
  put("fs/btrfs/features/acl", "0");
  const auto disks = disks_below(root_, 259, 31);
  ASSERT_EQ(disks.size(), 2u);
  EXPECT_EQ(disks[0].name + disks[1].name, "nvme1n1nvme3n1");
  EXPECT_NEAR(link_rate_below(root_, 259, 31, disks), 7.877e9, 1e6) << "a file may be on one of them alone";
  EXPECT_EQ(disks_below(root_, 259, 21).size(), 1u) << "no part of it";
}

TEST_F(StoragePlace, DisksCountTheirBytesInSectors) {
  nvme(1, "A1");
  nvme(2, "A2");
  const std::string one = "devices/pci0000:00/0000:01:00.0/nvme/nvme1/nvme1n1",
                    two = "devices/pci0000:00/0000:02:00.0/nvme/nvme2/nvme2n1";
  put(one + "/stat", "   5  0  1000  7   9  0  30  8  0 1 2 3 4 5 6 7 8");
  put(two + "/stat", "   5  0  2000  7   9  0  50  8  0 1 2");
  auto disks = block_devices_below(root_, 259, 11);
  ASSERT_EQ(disks, std::vector<fs::path>{root_ / one}) << "a partition's bytes are its disk's";
  disks.push_back(root_ / two);
  ASSERT_TRUE(counted_by(disks));
  EXPECT_EQ(counted_by(disks)->read, 3000u * 512);
  EXPECT_EQ(counted_by(disks)->written, 80u * 512);
  put(one + "/queue/iostats", "1");
  EXPECT_TRUE(counted_by(disks));
  put(one + "/queue/iostats", "0");
  EXPECT_FALSE(counted_by(disks)) << "one of them does not count any more";
  disks.erase(disks.begin());
  EXPECT_TRUE(counted_by(disks));
  put(two + "/stat", "5 0 2000 7 0 0 0 0 0 1 2");
  EXPECT_FALSE(counted_by(disks)) << "it never counted what was written";
  put(two + "/stat", "5 0");
  EXPECT_FALSE(counted_by(disks));
  EXPECT_FALSE(counted_by({}));
  put(one + "/queue/iostats", "1");
  const auto read = work_of({root_ / one}, false), written = work_of({root_ / one}, true);
  EXPECT_EQ(read[0].disk, "nvme1n1");
  EXPECT_EQ(read[0].requests, 5);
  EXPECT_DOUBLE_EQ(read[0].seconds, 0.007);
  EXPECT_EQ(written[0].requests, 9);
  EXPECT_DOUBLE_EQ(written[0].seconds, 0.008);
}

TEST(StorageDisks, OneOfSeveralIsNamedThatIsTwiceAsSlowAsTheOthers) {
  const DiskWork a{"sda", 1000, 4}, c{"sdc", 1100, 4.1}, hot{"sdb", 1000, 12};
  EXPECT_EQ(slow_member_of({a, hot, c}), "sdb took 12 ms for a request, 3 times the 4 ms of sdc, sda");
  EXPECT_EQ(slow_member_of({hot, a}), "sdb took 12 ms for a request, 3 times the 4 ms of sda");
  EXPECT_EQ(slow_member_of({a, c, {"sdb", 1000, 7.9}}), "") << "less than twice";
  EXPECT_EQ(slow_member_of({a, c}), "");
  EXPECT_EQ(slow_member_of({hot}), "") << "nothing to compare with";
  EXPECT_EQ(slow_member_of({}), "");
  EXPECT_EQ(slow_member_of({hot, {"sda", 90, 0.1}}), "")
      << "hardly used: a spare, or the end of a concatenation";
  EXPECT_EQ(slow_member_of({{"sda", 50, 0.1}, {"sdb", 50, 5}}), "") << "too few requests";
  EXPECT_EQ(slow_member_of({{"sda", 1000, 0.001}, {"sdb", 1000, 0.003}}), "")
      << "within the kernel's milliseconds";
  EXPECT_EQ(slow_member_of({{"nvme0n1", 90000, 9}, {"nvme1n1", 90000, 27}}),
            "nvme1n1 took 0.3 ms for a request, 3 times the 0.1 ms of nvme0n1");
  EXPECT_THAT(slow_member_of({{"sda", 30000, 60}, {"sdb", 1500, 60}}), testing::StartsWith("sdb took 40 ms"))
      << "a mirror that gets a twentieth of the requests";
}

TEST(StorageDisks, DisksOfOneKindAreCompared) {
  const DiskWork flash{"nvme0n1", 1000, 0.1, "P5800"}, disk{"sda", 1000, 8, "ST8000"};
  EXPECT_EQ(slow_member_of({flash, disk}), "") << "a write-mostly mirror, or what is behind a cache";
  const DiskWork slow{"sdb", 1000, 24, "ST8000"};
  EXPECT_EQ(slow_member_of({flash, disk, slow}), "sdb took 24 ms for a request, 3 times the 8 ms of sda");
}

TEST(StorageDisks, TimesOfRequestsWrapAt32Bits) {
  const auto work =
      work_since({{"sda", 100, 4294966.0}, {"sdb", 100, 7}}, {{"sda", 1100, 3}, {"sdb", 1100, 11}});
  EXPECT_NEAR(work[0].seconds, 4.296, 1e-6);
  EXPECT_EQ(work[0].requests, 1000);
  EXPECT_EQ(slow_member_of(work), "");
}

TEST_F(StoragePlace, CountersOfTheNfsClientAreThoseOfTheMountAndOfItsServers) {
  const std::string stats =
      "device /dev/sda1 mounted on / with fstype ext4\n"
      "device srv:/a mounted on /mnt/other with fstype nfs4 statvers=1.1\n"
      "\topts:\trw,vers=4.2\n\tbytes:\t1 2 3 4 5 6 7 8 \n"
      "device srv:/b mounted on /mnt/with\\040space with fstype nfs statvers=1.1\n"
      "\tage:\t17\n\tbytes:\t100 200 300 400 4096 8192 1 2 \n\tevents:\t9 9 9\n"
      "device srv:/c mounted on /mnt/cut with fstype nfs4 statvers=1.1\n\tbytes:\t1 2 3\n"
      "device proc mounted on /proc with fstype proc\n";
  const auto moved = counted_by_nfs(stats, "/mnt/with space");
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->read, 4096u) << "what read(2) got may come from a cache";
  EXPECT_EQ(moved->written, 8192u);
  EXPECT_EQ(counted_by_nfs(stats, "/mnt/other")->read, 5u);
  EXPECT_FALSE(counted_by_nfs(stats, "/mnt/cut"));
  EXPECT_FALSE(counted_by_nfs(stats, "/")) << "not NFS";
  EXPECT_FALSE(counted_by_nfs(stats, "/mnt"));
  EXPECT_FALSE(counted_by_nfs("", "/mnt/other"));
}

TEST_F(StoragePlace, SataLinkAndVirtualDisks) {
  const std::string port = "devices/pci0000:00/0000:00:1f.2/ata3";
  put("devices/pci0000:00/0000:00:1f.2/vendor", "0x8086");
  put("devices/pci0000:00/0000:00:1f.2/class", "0x010601");
  put(port + "/link3/ata_link/link3/sata_spd", "6.0 Gbps");
  put(port + "/host2/target2:0:0/2:0:0:0/model", "Spinner");
  put(port + "/host2/target2:0:0/2:0:0:0/rev", "7");
  put(port + "/host2/target2:0:0/2:0:0:0/block/sda/size", "1");
  link(port + "/host2/target2:0:0/2:0:0:0/block/sda/device", port + "/host2/target2:0:0/2:0:0:0");
  link("dev/block/8:0", port + "/host2/target2:0:0/2:0:0:0/block/sda");
  auto disks = disks_below(root_, 8, 0);
  ASSERT_EQ(disks.size(), 1u);
  EXPECT_EQ(disks[0].link, "6.0 Gbps");
  EXPECT_DOUBLE_EQ(disks[0].link_rate, 600e6);
  EXPECT_EQ(disks[0].firmware, "7");
  EXPECT_DOUBLE_EQ(link_rate_below(root_, 8, 0, disks), 600e6);
  put(port + "/host2/target2:0:0/2:0:0:0/block/sda/queue/rotational", "1");
  disks = disks_below(root_, 8, 0);
  EXPECT_EQ(disks[0].link, "6.0 Gbps");
  EXPECT_TRUE(std::isnan(disks[0].link_rate)) << "its platters bound a hard disk";
  const std::string pci = "devices/pci0000:00/0000:00:05.0";
  put(pci + "/vendor", "0x1af4");
  put(pci + "/class", "0x010000");
  put(pci + "/current_link_speed", "2.5 GT/s PCIe");
  put(pci + "/current_link_width", "1");
  put(pci + "/virtio1/block/vda/size", "1");
  link(pci + "/virtio1/block/vda/device", pci + "/virtio1");
  link("dev/block/254:0", pci + "/virtio1/block/vda");
  disks = disks_below(root_, 254, 0);
  ASSERT_EQ(disks.size(), 1u);
  EXPECT_TRUE(std::isnan(disks[0].link_rate)) << "a virtual disk is not bound by a virtual link";
}

TEST(StoragePlaces, LongestMountIsTaken) {
  const std::string text =
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,errors=remount-ro\n"
      "30 22 0:40 / /scratch rw - nfs4 srv:/export rw,vers=4.2,clientaddr=10.0.0.2,addr=10.0.0.1\n"
      "31 22 0:41 / /scratch/my\\040dir rw - tmpfs none rw\n";
  EXPECT_EQ(mount_of(text, "/scratch/x")->type, "nfs4");
  EXPECT_EQ(mount_of(text, "/scratch/x")->source, "srv:/export");
  EXPECT_EQ(mount_of(text, "/scratch/my dir/y")->type, "tmpfs");
  EXPECT_EQ(mount_of(text, "/scratches")->type, "ext4");
  EXPECT_FALSE(mount_of("", "/"));
}

TEST(StoragePlaces, NetworkFileSystemsAreKnownByTheirType) {
  for (const char* type : {"nfs4", "9p", "virtiofs", "dvs", "ceph", "lustre", "fuse.sshfs", "fuse.glusterfs",
                           "fuse.s3fs", "fuse.ceph-fuse", "fuse.juicefs", "fuse.blobfuse2"})
    EXPECT_TRUE(is_network(type)) << type;
  for (const char* type :
       {"ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse", "fuseblk", "fuse.mergerfs"})
    EXPECT_FALSE(is_network(type)) << type;
}

TEST(StoragePlaces, AnOverlayHasItsFilesInTheUpperDirectory) {
  const auto upper = [](const char* type, const char* options) {
    return upper_of({"/", type, "overlay", options});
  };
  EXPECT_EQ(upper("overlay", "rw,relatime,rw,lowerdir=/l1:/l2,upperdir=/var/u\\040p,workdir=/var/w"),
            "/var/u p");
  EXPECT_EQ(upper("overlay", "rw,lowerdir=/a,upperdir=/u"), "/u");
  EXPECT_EQ(upper("overlay", "ro,lowerdir=/a:/b"), "") << "read-only";
  EXPECT_EQ(upper("ext4", "rw,upperdir=/u"), "");
  EXPECT_EQ(beneath_overlays("/proc"), "/proc");
}

TEST(StoragePlaces, WhatLiesInMemoryIsKnownBeneathAnOverlayToo) {
  const Descriptor in_memory(::memfd_create("assay", MFD_CLOEXEC));
  EXPECT_TRUE(is_in_memory(in_memory.get(), "a file"));
  const Descriptor other(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_in_memory(other.get(), "/proc/self/stat"));
  EXPECT_FALSE(is_in_memory(-1, "a file"));
  const TemporaryFolder folder;
  const auto in_folder = [&](const char* name) {
    fs::create_directories(folder.path() / name);
    return (folder.path() / name).string();
  };
  const auto file_in = [](const std::string& directory) {
    const std::string path = directory + "/run/file";  // both are removed while the file is open
    fs::create_directory(directory + "/run");
    const Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_TRUE(fd);
    fs::remove_all(directory + "/run");
    return is_in_memory(fd.get(), path);
  };
  const std::string ram = in_folder("ram"), memory = in_folder("memory"), over = in_folder("over");
  if (::mount("none", ram.c_str(), "ramfs", 0, nullptr) != 0)
    GTEST_SKIP() << "no privilege: mount a file system";
  EXPECT_TRUE(file_in(ram));
  ::umount2(ram.c_str(), MNT_DETACH);
  ASSERT_EQ(::mount("none", memory.c_str(), "tmpfs", 0, nullptr), 0);
  const auto overlay_of = [&](const std::string& upper, const std::string& work) {
    const std::string options = "lowerdir=" + in_folder("lower") + ",upperdir=" + upper + ",workdir=" + work;
    return ::mount("overlay", over.c_str(), "overlay", 0, options.c_str()) == 0;
  };
  const bool overlay = overlay_of(in_folder("memory/upper"), in_folder("memory/work"));
  if (overlay) {
    EXPECT_TRUE(file_in(over));
    ::umount2(over.c_str(), MNT_DETACH);
  }
  ::umount2(memory.c_str(), MNT_DETACH);
  if (!overlay) GTEST_SKIP() << "no privilege: no overlay over tmpfs in this kernel";
  if (mount_now(folder.path().string()).value_or(Mount{}).type == "tmpfs" ||
      !overlay_of(in_folder("upper"), in_folder("work")))
    return;
  EXPECT_FALSE(file_in(over));
  ::umount2(over.c_str(), MNT_DETACH);
}

TEST(StoragePlaces, NvmeHealthIsLittleEndian) {
  std::array<std::uint8_t, 512> log{};
  log[1] = 0x39;
  log[2] = 0x01;  // 313 K
  log[5] = 7;
  log[144] = 12;
  log[161] = 2;
  const DiskHealth smart = parse_nvme(log);
  EXPECT_EQ(smart.temperature_k, 313);
  EXPECT_EQ(smart.percentage_used, 7);
  EXPECT_EQ(smart.unsafe_shutdowns, 12);
  EXPECT_EQ(smart.media_errors, 512);
}

using LogPage = std::array<std::uint8_t, 512>;

/// A page of ATA's device statistics whose first one is `value`, supported and valid.
LogPage ata_page(std::uint8_t number, std::initializer_list<std::uint8_t> value, std::uint8_t flags = 0xc0) {
  LogPage page{};
  page[0] = 1;  // revision
  page[2] = number;
  std::copy(value.begin(), value.end(), page.begin() + 8);
  page[15] = flags;
  return page;
}

TEST(StoragePlaces, AtaHealthIsThatOfValidStatistics) {
  const auto hot = parse_ata(ata_page(4, {0x02, 0x01}), ata_page(5, {45}), ata_page(7, {3}));
  EXPECT_EQ(hot.media_errors, 258);
  EXPECT_EQ(hot.temperature_k, 318);
  EXPECT_EQ(hot.percentage_used, 3);
  EXPECT_TRUE(std::isnan(hot.unsafe_shutdowns));
  EXPECT_EQ(parse_ata(LogPage{}, ata_page(5, {0xfb}), LogPage{}).temperature_k, 268) << "-5 degrees";
  const auto none = parse_ata(ata_page(4, {9}, 0x80), LogPage{}, ata_page(5, {3}));
  EXPECT_TRUE(std::isnan(none.media_errors)) << "supported, not valid";
  EXPECT_TRUE(std::isnan(none.temperature_k));
  EXPECT_TRUE(std::isnan(none.percentage_used)) << "another page";
}

TEST(StoragePlaces, ScsiHealthIsThatOfLogParameters) {
  using Log = std::vector<std::uint8_t>;
  const Log writes{2, 0, 0, 14, 0, 3, 2, 4, 0, 0, 0, 9, 0, 6, 2, 2, 1, 2},
      reads{3, 0, 0, 12, 0, 6, 2, 8, 0, 0, 0, 0, 0, 0, 0, 5}, heat{0x0d, 0, 0, 6, 0, 0, 3, 2, 0, 41},
      wear{0x11, 0, 0, 8, 0, 1, 3, 4, 0, 0, 0, 12};
  const auto all = parse_scsi(writes, reads, heat, wear);
  EXPECT_EQ(all.media_errors, 258 + 5);
  EXPECT_EQ(all.temperature_k, 314);
  EXPECT_EQ(all.percentage_used, 12);
  EXPECT_TRUE(std::isnan(all.unsafe_shutdowns));
  const auto none = parse_scsi({}, {}, Log{0x0d, 0, 0, 6, 0, 0, 3, 2, 0, 255}, {});
  EXPECT_TRUE(std::isnan(none.media_errors));
  EXPECT_TRUE(std::isnan(none.temperature_k));
  EXPECT_TRUE(std::isnan(none.percentage_used));
  for (std::size_t bytes = 0; bytes < writes.size(); ++bytes) {
    const auto cut = parse_scsi(std::span(writes).first(bytes), {}, {}, {});
    EXPECT_TRUE(std::isnan(cut.media_errors)) << bytes;
  }
  EXPECT_TRUE(std::isnan(parse_scsi(Log{2, 0, 255, 255, 0, 6, 2, 255, 1}, {}, {}, {}).media_errors));
}

TEST(StoragePlaces, GreatestOfTheDisksThatTell) {
  std::vector<Disk> disks(3);
  disks[0].health.temperature_k = disks[2].health.temperature_k = std::nan("");
  disks[1].health.temperature_k = 313;
  EXPECT_EQ(greatest(disks, &DiskHealth::temperature_k), 313);
  disks[0].health.temperature_k = 320;
  EXPECT_EQ(greatest(disks, &DiskHealth::temperature_k), 320) << "no sum";
  EXPECT_TRUE(std::isnan(greatest({}, &DiskHealth::temperature_k)));
}

TEST(StoragePlaces, MinorityIsOdd) {
  EXPECT_EQ(usual_one({"b", "a", "c", "a", "a"}), "a");
  EXPECT_EQ(usual_one({"a", "b"}), "");
  EXPECT_EQ(usual_one({}), "");
}

}  // namespace
}  // namespace assay::storage
