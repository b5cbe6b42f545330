// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/topology_tree.hpp"
#include "topology/probe_parts.hpp"
#include "topology/topology.hpp"

namespace assay {
namespace {
using ::testing::ElementsAre;
using testing::Tree;

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(Probe, ReadsCpusMemoryAndSettings) {
  Tree tree;
  testing::add_cpus(tree, 2, 4, 2);
  tree.file("/proc/sys/kernel/hostname", "node07.cluster.example\n")
      .file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.file("/proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon 8480+\nmicrocode\t: "
            "0x2b\nflags\t\t: fpu\n"
            "\nprocessor\t: 1\nmodel name\t: Xeon 8480+\nmicrocode\t: 0x2c\nflags\t\t: fpu\n");
  tree.file("/proc/meminfo", "MemTotal:  134217728 kB\nMemAvailable:  1048576 kB\n")
      .file("/proc/cmdline", "ro quiet\n");
  tree.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.file("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n");
  tree.file("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n");
  tree.file("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "3800000\n");
  tree.file("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Debian 12\"\n");
  const Node node = probe_node(tree.root());
  EXPECT_EQ(node.hostname, "node07");
  EXPECT_EQ(node.sockets, 2);
  EXPECT_EQ(node.cores, 8);
  EXPECT_EQ(node.pus, 16);
  EXPECT_TRUE(node.smt);
  EXPECT_THAT(node.core_pus[1], ElementsAre(1, 9));
  ASSERT_EQ(node.numa.size(), 2U);
  EXPECT_THAT(node.numa[1].cpus, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_DOUBLE_EQ(static_cast<double>(node.numa[1].memory_bytes), 64 * kGiB);
  EXPECT_EQ(node.caches.size(), 2U);
  EXPECT_DOUBLE_EQ(static_cast<double>(node.llc_bytes_total()), 2.0 * 32768 * 1024);
  EXPECT_DOUBLE_EQ(static_cast<double>(node.llc_bytes_of({0, 1})), 32768.0 * 1024);
  EXPECT_EQ(node.numa_of({4, 12}), 1);
  EXPECT_EQ(node.numa_of({0, 4}), -1);
  EXPECT_EQ(node.numa_of({}), -1);
  EXPECT_EQ(node.microcode, "0x2b,0x2c") << "two microcodes in one machine must show";
  EXPECT_EQ(node.governor, "performance,powersave");
  EXPECT_DOUBLE_EQ(node.max_clock_hz, 3.8e9);
  EXPECT_EQ(node.hypervisor, "none");
  EXPECT_EQ(node.os, "Debian 12");
  EXPECT_EQ(node.transparent_hugepages, "madvise");
  EXPECT_DOUBLE_EQ(static_cast<double>(node.memory_bytes), 128 * kGiB);
  EXPECT_DOUBLE_EQ(static_cast<double>(node.memory_available_bytes), kGiB);
}

TEST(Probe, NothingOfferedIsUnsupportedAndNeverZero) {
  Tree tree;
  const Node node = probe_node(tree.root());
  EXPECT_EQ(node.hostname, "localhost");
  EXPECT_TRUE(std::isnan(node.max_clock_hz));
  EXPECT_TRUE(std::isnan(node.cgroup_limit_bytes));
  EXPECT_TRUE(std::isnan(node.cgroup_used_bytes));
  EXPECT_TRUE(std::isnan(node.cpu_quota_cores));
  EXPECT_TRUE(std::isnan(node.memory_bandwidth_bytes_per_s));
  EXPECT_TRUE(node.governor.empty());
  EXPECT_TRUE(node.hypervisor.empty());
  EXPECT_TRUE(node.iommu.empty());
  EXPECT_TRUE(node.acs.empty());
  EXPECT_TRUE(node.nics.empty());
  EXPECT_TRUE(node.dimms.empty());
}

TEST(Probe, VirtualMachinesOfArmAreToldByTheirFirmware) {
  const auto told = [](const std::string& vendor, const std::string& product,
                       const std::string& device_tree = "") {
    Tree tree;
    tree.file("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n");
    if (!vendor.empty()) tree.file("/sys/class/dmi/id/sys_vendor", vendor + "\n");
    if (!product.empty()) tree.file("/sys/class/dmi/id/product_name", product + "\n");
    if (!device_tree.empty()) tree.file("/proc/device-tree/hypervisor/compatible", device_tree);
    return probe_node(tree.root()).hypervisor;
  };
  EXPECT_EQ(told("QEMU", "KVM Virtual Machine"), "KVM");
  EXPECT_EQ(told("Microsoft Corporation", "Virtual Machine"), "Virtual Machine");
  EXPECT_EQ(told("Amazon EC2", "c7g.16xlarge"), "Amazon EC2");
  EXPECT_EQ(told("Amazon EC2", "c7g.metal"), "none");
  EXPECT_EQ(told("", "", std::string("linux,kvm\0", 10)), "linux,kvm");
  EXPECT_EQ(told("", "", std::string("xen,xen-4.17\0xen,xen\0", 21)), "xen,xen-4.17");
  EXPECT_EQ(told("NVIDIA", "GH200 P5042"), "") << "nothing tells that there is none";
}

TEST(Probe, ThisMachineIsPlausible) {
  const Node node = probe_node();
  EXPECT_GE(node.sockets, 1);
  EXPECT_GE(node.cores, node.sockets);
  EXPECT_GE(node.pus, node.cores);
  EXPECT_EQ(static_cast<int>(node.core_pus.size()), node.cores);
  EXPECT_GT(node.memory_bytes, 0U);
  EXPECT_LE(node.memory_available_bytes, node.memory_bytes);
  EXPECT_FALSE(node.kernel.empty());
  EXPECT_FALSE(node.hostname.empty());
  EXPECT_EQ(to_json(node_from_json(to_json(node))).dump(), to_json(node).dump());
}

TEST(Probe, DmiGivesIdentityButPlaceholdersDoNot) {
  Tree tree;
  tree.file("/proc/sys/kernel/hostname", "n1\n")
      .file("/sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8054-B7C04F4D5331\n");
  tree.file("/sys/class/dmi/id/sys_vendor", "Acme\n")
      .file("/sys/class/dmi/id/board_name", "To Be Filled By O.E.M.\n");
  tree.file("/sys/class/dmi/id/bios_version", "2.1 \xff\n");
  Node node = probe_node(tree.root());
  EXPECT_EQ(node.id, "4c4c4544-0042-3510-8054-b7c04f4d5331");
  EXPECT_EQ(node.id_source, "dmi");
  EXPECT_EQ(node.board, "Acme");
  EXPECT_EQ(node.bios, "2.1 ?") << "bytes that are no ASCII must not reach JSON";
  tree.file("/sys/class/dmi/id/product_uuid", "03000200-0400-0500-0006-000700080009\n");
  node = probe_node(tree.root());
  EXPECT_EQ(node.id, "n1");
  EXPECT_EQ(node.id_source, "hostname");
}

TEST(Probe, CgroupVersion1TakesTheTightestLevel) {
  Tree tree;
  tree.file("/proc/meminfo", "MemTotal:  67108864 kB\n");
  tree.file("/proc/self/cgroup", "4:memory:/job/step\n3:cpu,cpuacct:/job\n0::/\n");
  tree.file("/proc/self/mountinfo",
            "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
            "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  const std::string memory = "/sys/fs/cgroup/memory";
  tree.file(memory + "/memory.limit_in_bytes", "9223372036854771712\n")
      .file(memory + "/memory.usage_in_bytes", "5\n");
  tree.file(memory + "/job/memory.limit_in_bytes", "10737418240\n")
      .file(memory + "/job/memory.usage_in_bytes", "9663676416\n");
  tree.file(memory + "/job/step/memory.limit_in_bytes", "8589934592\n")
      .file(memory + "/job/step/memory.usage_in_bytes", "1073741824\n");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  tree.file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
      .file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  Node node = probe_node(tree.root());
  EXPECT_DOUBLE_EQ(node.cgroup_limit_bytes, 10 * kGiB)
      << "the job's group leaves 1 GiB, the step's own 7 GiB";
  EXPECT_DOUBLE_EQ(node.cgroup_used_bytes, 9 * kGiB);
  EXPECT_DOUBLE_EQ(node.cpu_quota_cores, 1.5);
  tree.file(memory + "/job/memory.stat", "cache 1\ntotal_inactive_file 8589934592\n");
  node = probe_node(tree.root());
  EXPECT_DOUBLE_EQ(node.cgroup_limit_bytes, 8 * kGiB) << "page cache that can be dropped is not in the way";
}

TEST(Probe, CgroupVersion2NestedAndInsideAContainer) {
  Tree tree;
  tree.file("/proc/meminfo", "MemTotal:  67108864 kB\n").file("/proc/self/cgroup", "0::/docker/abc/job\n");
  tree.file("/proc/self/mountinfo", "30 20 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  tree.file("/sys/fs/cgroup/memory.max", "max\n").file("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  tree.file("/sys/fs/cgroup/job/memory.max", "4294967296\n")
      .file("/sys/fs/cgroup/job/memory.current", "1073741824\n");
  tree.file("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  const Node node = probe_node(tree.root());
  EXPECT_DOUBLE_EQ(node.cgroup_limit_bytes, 4 * kGiB);
  EXPECT_DOUBLE_EQ(node.cgroup_used_bytes, kGiB);
  EXPECT_DOUBLE_EQ(node.cpu_quota_cores, 4.0);
}

TEST(Probe, EnvironmentKeepsWhatPeopleSetOnly) {
  const char* const environment[] = {"NCCL_IB_HCA=mlx5",
                                     "UCX_TLS=rc",
                                     "OMPI_MCA_btl=self,vader",
                                     "OMPI_COMM_WORLD_RANK=3",
                                     "OMPI_MCA_orte_hnp_uri=secret",
                                     "OMPI_MCA_routed=radix",
                                     "OMP_NUM_THREADS=4",
                                     "HOME=/root",
                                     nullptr};
  const auto kept = allowed_environment(environment);
  EXPECT_EQ(kept.size(), 4U);
  EXPECT_EQ(kept.at("OMPI_MCA_btl"), "self,vader");
  EXPECT_FALSE(kept.contains("OMPI_COMM_WORLD_RANK"));
  EXPECT_FALSE(kept.contains("OMPI_MCA_routed")) << "the launcher sets it on all hosts but its own";
  EXPECT_FALSE(kept.contains("HOME"));
}

TEST(NodeJson, KeepsEverythingAndRefusesNonsense) {
  Node node = testing::made_node("node07", 4, 2);
  node.nics.push_back(testing::made_nic("mlx5_0:1", "infiniband", "0000:3b:00.0", 5e10));
  node.nics.edit()[0].netdev = "ib0";
  node.nic_ids = {"guid"}, node.dimm_serials = {"S"};
  node.dimms.push_back({"A1", "P", "M", 32.0 * kGiB, 4800, unsupported});
  node.pci_links.push_back({"0000:3b:00.0", "network", "x", 16, 32, 8, 16, 0, {}, {}});
  node.caches.push_back({3, 1 << 20, {0, 1}});
  node.software.edit()["hwloc"] = "2.9";
  const Node back = node_from_json(Json::parse(to_json(node).dump()));
  EXPECT_EQ(to_json(back).dump(), to_json(node).dump());
  EXPECT_EQ(back.nics[0].netdev, "ib0");
  EXPECT_TRUE(std::isnan(back.nics[0].max_rate_bytes_per_s)) << "unsupported must not come back as 0";
  EXPECT_TRUE(std::isnan(back.dimms[0].configured_mt_s));
  EXPECT_EQ(back.core_pus, node.core_pus);
  EXPECT_ANY_THROW(node_from_json(Json::parse("{\"hostname\": 3}")));
}

}  // namespace
}  // namespace assay
