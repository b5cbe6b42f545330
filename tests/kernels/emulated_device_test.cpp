// SPDX-License-Identifier: Apache-2.0
// A GPU as a Device where its emulation can do what no GPU does on demand: hold a wrong word in its cache,
// refuse a call, count what was asked of it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "base/gpu_architecture.hpp"
#include "device/corrupt.hpp"
#include "device/cuda/check.hpp"
#include "device/cuda/cuda_backend.hpp"
#include "device/cuda/cuda_memory_ops.hpp"
#include "device/memory_ops.hpp"
#include "fresh.hpp"
#include "tests/kernels/cuda_contract.hpp"

namespace assay::test {
namespace {

using kernels::ErrorLog;
using kernels::Sweep;

class EmulatedDevice : public FreshCudaKernel {
 protected:
  void SetUp() override {
    std::string why;
    device = cuda_backend().make_device(cuda_backend().visible(why).at(0).uuid);
  }
  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(device->arena().data()); }

  /// What `sweeping` says of a word of the device's arena that its cache holds wrong.
  kernels::ErrorRecord bad_read(Device& sweeping) {
    Sweep write, check;
    write.write = check.verify = true;
    write.next = check.expected = {kernels::Background::random, bits(), 0, false};
    const std::size_t n = 20'000, bad = below(n);
    ErrorLog log;
    sweeping.sweep(write, words(), n, log);
    sweeping.synchronize();
    emulation::hold_in_cache(words() + bad, ~data_word(check.expected, bad));
    sweeping.sweep(check, words(), n, log);
    EXPECT_EQ(log.count(), 1u);
    EXPECT_EQ(log.records().at(0).index, bad);
    return log.records().at(0);
  }

  std::unique_ptr<Device> device;
};

TEST_F(EmulatedDevice, WrongWordOfTheCacheIsReadAgainFromMemory) {
  for (const std::size_t arena : {std::size_t{1} << 20, std::size_t{6} << 20})
    for (const bool second : {false, true}) {
      SCOPED_TRACE(std::to_string(arena) + (second ? " bytes, a second stream" : " bytes"));
      device->reserve(arena);
      const auto other = device->second_stream();
      const kernels::ErrorRecord r = bad_read(second ? *other : *device);
      EXPECT_EQ(r.actual, ~r.expected);
      EXPECT_EQ(r.reread, r.expected) << "a bad read, not a bad cell";
      EXPECT_FALSE(r.unstable);
    }
}

TEST_F(EmulatedDevice, WithoutMemoryToEmptyTheCacheARecordSaysSo) {
  device->reserve(std::size_t{1} << 20);
  Sweep write, verify;
  write.write = verify.verify = true;
  ErrorLog none;
  device->sweep(write, words(), 1, none);
  device->sweep(verify, words(), 1, none);  // allocates what every sweep needs
  ASSERT_EQ(none.count(), 0u);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  void* all = nullptr;
  ASSERT_EQ(cudaMalloc(&all, free), cudaSuccess);
  EXPECT_TRUE(bad_read(*device).cached);
  ASSERT_EQ(cudaFree(all), cudaSuccess);
  EXPECT_FALSE(bad_read(*device).cached);
}

TEST_F(EmulatedDevice, ProductsWithFewAlgorithmsByHeuristicsTryOthersByTheirNumbers) {
  constexpr std::size_t n = 16, stride = 1 << 12;
  device->reserve(3 * stride);
  std::byte* a = device->arena().data();
  device->fill_uniform(NumType::bf16, a, 2 * stride / 2, 1);
  const auto tried = [&](const char* known) {
    setenv("ASSAY_EMULATED_HEURISTICS", known, 1);
    const auto algorithm = device->tune(NumType::bf16, {n, n, n}, a, a + stride, a + 2 * stride);
    unsetenv("ASSAY_EMULATED_HEURISTICS");
    EXPECT_NE(algorithm->name.find("splitk=1"), std::string::npos) << algorithm->name;
    return algorithm->candidates;
  };
  EXPECT_EQ(tried("3"), 32);
  EXPECT_EQ(tried("35"), 35) << "enough";
}

/// One multiprocessor at the emulation's 1 GHz, by the table that bounds products.
TEST_F(EmulatedDevice, NominalPeakIsThatOfTheTableOfArchitectures) {
  const std::string text = device->description(), name = text.substr(text.find("compute ") + 8, 3);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const GpuArchitecture* const architecture = gpu_architecture(name);
  ASSERT_NE(architecture, nullptr) << name;
  for (const NumType type : num_types)
    EXPECT_EQ(device->nominal_peak_flops(type),
              1e9 * properties.multiProcessorCount * architecture->operations(to_string(type)))
        << to_string(type);
  EXPECT_GT(architecture->operations("fp64"), 0);
}

TEST_F(EmulatedDevice, ProductsOfMisalignedMatricesAreRefused) {
  device->reserve(1 << 14);
  std::byte* a = device->arena().data();
  const auto at = [&](std::size_t shift) {
    device->matmul(NumType::fp32, {16, 16, 16}, a + shift, a + 4096, a + 8192);
    device->synchronize();
  };
  EXPECT_NO_THROW(at(256));
  EXPECT_THROW(at(64), Error);
}

TEST_F(EmulatedDevice, FastAccumulationIsAskedForByItsTypeAlone) {
  constexpr std::size_t n = 64, k = 512;
  device->reserve(1 << 20);
  std::byte* a = device->arena().data();
  std::byte *b = a + (1 << 18), *c = a + (1 << 19);
  constexpr std::byte two{0x40}, fifteen{0x57};
  const auto product = [&](NumType type, std::byte number) {
    const std::vector<std::byte> operand(n * k, number);
    for (std::byte* matrix : {a, b}) device->copy_to_device(matrix, operand.data(), operand.size());
    device->matmul(type, plain_product(type, {n, n, k}, Output::exact), a, b, c);
    return device->digest(c, n * n * sizeof(float));
  };
  EXPECT_EQ(product(NumType::fp8, two), product(NumType::fp8_fast, two)) << "the integers of the exact pass";
  EXPECT_NE(product(NumType::fp8, fifteen), product(NumType::fp8_fast, fifteen))
      << "sums of more than 14 bits";
}

TEST_F(EmulatedDevice, AnErrorIsToldOnceAndUnderItsOwnName) {
  void* memory = nullptr;
  EXPECT_THROW(assay::cuda::check(cudaMalloc(&memory, std::size_t{1} << 50), "cudaMalloc"), Error);
  EXPECT_NO_THROW(assay::cuda::check_launch("a kernel that started"));
}

TEST_F(EmulatedDevice, WorkThatIsNotOverIsNoErrorOfTheNextLaunch) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  bool over = false;
  emulation::enqueue_until(stream, [&] { return over; });
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(assay::cuda::queried(cudaStreamQuery(stream)), cudaErrorNotReady);
  EXPECT_NO_THROW(assay::cuda::check_launch("a kernel"));
  EXPECT_EQ(assay::cuda::queried(cudaEventQuery(event)), cudaErrorNotReady);
  EXPECT_NO_THROW(assay::cuda::check_launch("a kernel"));
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_THROW(assay::cuda::check_launch("a kernel"), Error) << "as CUDA does where nobody clears it";
  over = true;
  EXPECT_EQ(assay::cuda::queried(cudaStreamQuery(stream)), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

/// From now on, in this thread: as in containers without the right to bind memory.
void refuse_binding() {
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(rules), rules};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_F(EmulatedDevice, HostMemoryLiesInTheDomainOfItsNameOrIsRefused) {
  MemoryOps* ops = device->memory_ops();
  unsigned here = 0;
  ASSERT_EQ(syscall(SYS_getcpu, nullptr, &here, nullptr), 0);
  const auto in_domain = [&](int numa) { return ops->host_buffer(numa, 1 << 20) != nullptr; };
  EXPECT_TRUE(in_domain(static_cast<int>(here)));
  EXPECT_EQ(ops->host_buffer_way(), "bound");
  EXPECT_TRUE(in_domain(-1));
  EXPECT_EQ(ops->host_buffer_way(), "any");
  EXPECT_THROW(in_domain(1000), Error) << "there is no such domain";
  std::thread([&] {
    refuse_binding();
    // The system puts memory where the thread runs that touches it, unless that domain has none.
    EXPECT_TRUE(in_domain(static_cast<int>(here)));
    EXPECT_EQ(ops->host_buffer_way(), "first touch");
    EXPECT_THROW(in_domain(static_cast<int>(here) + 1), Error) << "it lies elsewhere";
  }).join();
}

TEST_F(EmulatedDevice, MemoryIsTouchedByAThreadOfTheDomain) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    int ran_on = -1;
    EXPECT_TRUE(assay::cuda::run_on({cpu}, [&] { ran_on = sched_getcpu(); }));
    EXPECT_EQ(ran_on, cpu);
  }
  bool ran = false;
  EXPECT_FALSE(assay::cuda::run_on({}, [&] { ran = true; })) << "a domain without CPUs";
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace assay::test
