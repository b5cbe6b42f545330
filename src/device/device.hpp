// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/exact.hpp"
#include "kernels/pattern.hpp"
#include "kernels/payload.hpp"
#include "kernels/stream.hpp"

namespace assay {

/// fp8 is e4m3; fp8_fast the same with sums that tensor cores keep with fewer bits (Ada, Hopper). Of fp8_e5m2
/// the left operand is e5m2 and the right one e4m3, as gradients times weights: cuBLASLt has no products of
/// e5m2 alone.
enum class NumType { fp64, fp32, tf32, fp16, bf16, fp8, fp8_fast, fp8_e5m2, int8 };
inline constexpr std::array num_types{NumType::fp64,     NumType::fp32,     NumType::tf32,
                                      NumType::fp16,     NumType::bf16,     NumType::fp8,
                                      NumType::fp8_fast, NumType::fp8_e5m2, NumType::int8};
const char* to_string(NumType type) noexcept;
/// The names of all types, for options.
std::vector<std::string> num_type_names();
/// The type of the elements of a product's right operand; those of the left one are of the product's.
constexpr NumType right_operand(NumType type) noexcept {
  return type == NumType::fp8_e5m2 ? NumType::fp8 : type;
}
/// The type of a name such as "fp32".
std::optional<NumType> num_type(std::string_view name) noexcept;
std::size_t size_of(NumType type) noexcept;

/// C[m,n] = A[m,k] B[k,n], row-major, no transposes, alpha 1, beta 0.
struct GemmShape {
  std::size_t m = 0, n = 0, k = 0;
  double flops() const noexcept {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// What results are stored in. native: as frameworks do (fp16 and bf16 in their own type, fp8 in bf16).
/// exact: what they are summed in (fp32 for all of these), which holds integers.
enum class Output { native, exact };
/// Bytes of an element of C.
std::size_t result_size(NumType type, Output output) noexcept;

/// C[m,n] = op(A) op(B), row-major and contiguous: op(A) is [m,k], stored [k,m] where transposed; op(B) is
/// [k,n], stored [n,k] where transposed. `accumulate` adds to C.
struct Matmul {
  std::size_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  Output output = Output::native;
  double flops() const noexcept { return GemmShape{m, n, k}.flops(); }
  bool operator==(const Matmul&) const = default;
};
/// C = A B as the type is multiplied fastest, or at all: with B stored [n,k] for fp8 and int8, as their
/// tensor cores need it.
Matmul plain_product(NumType type, const GemmShape& shape, Output output = Output::native) noexcept;

/// How a library computes one product, chosen among several.
struct GemmAlgorithm {
  std::string name;  ///< "id=66 tile=20 ...", for people and for case_key
  int candidates = 0;
  std::vector<unsigned char> bytes;  ///< the library's own description, to be given to equal devices
};

/// A link of a cycle that was built is not what it was: the memory was used for something else since, or has
/// a fault. The caller knows which.
struct BrokenLink {
  std::uint64_t byte_index = 0;  ///< of the wrong word in the memory
  std::uint64_t expected = 0, actual = 0, reread = 0;
};
struct ChaseTime {
  double ns = 0;  ///< of a load
  std::optional<BrokenLink> broken;
};

class TrainOps;
class MemoryOps;

/// What a rank computes with: a core set (host) or a GPU. Operations are queued in order and are
/// complete after `synchronize`; on the host they are complete when they return. Pointers are device memory
/// from `arena()`.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view kind() const
      noexcept = 0;  ///< "host" or its backend: for people, options and keys; decide by the traits below
  /// Memory apart from the host's: buffers are filled and checked where they lie, and its library may be
  /// tuned.
  virtual bool has_own_memory() const noexcept { return false; }
  /// Work is queued (see `stream`) and other work can go on beside it.
  virtual bool has_streams() const noexcept { return false; }
  virtual std::string description() const = 0;
  /// Library, kernel set and settings that decide results and speed; part of every case_key: "blas" ->
  /// "OpenBLAS 0.3.21 SkylakeX pthreads", "threads" -> "4", ...
  virtual std::map<std::string, std::string> identity() const = 0;
  virtual int threads() const noexcept = 0;
  /// Of identity(), what decides the bits of a result beside the number of threads: library and vector unit.
  /// Only results with equal ones are compared.
  std::uint64_t arithmetic() const;

  /// One allocation of at least `bytes`, touched once by the threads that will use it, reused by all cases.
  /// Growing it frees the old content. Throws Error(resource).
  virtual void reserve(std::size_t bytes) = 0;
  /// The same for memory that the system gives out slowly: touches no more from `until_s` of now_s() on, and
  /// returns how many bytes are touched. `reserve` touches the rest.
  virtual std::size_t reserve_until(std::size_t bytes, double /*until_s*/) {
    reserve(bytes);
    return bytes;
  }
  virtual std::span<std::byte> arena() noexcept = 0;  ///< 2 MiB aligned
  /// Arrays of `stream` whose distances are multiples of this lie in the NUMA domain of the thread that works
  /// on them (memory belongs to threads by turns, 2 MiB each); other distances are right, and slower on
  /// several domains.
  virtual std::size_t stride_bytes() const noexcept { return std::size_t{2} << 20; }
  virtual void synchronize() = 0;
  /// The same device for another thread, which makes and uses it: a queue of its own and no arena. Works on
  /// the memory of this one. Null where a device has only one queue.
  virtual std::unique_ptr<Device> second_stream() const { return nullptr; }
  /// For a thread that gives memory of this device to a library: makes it the device of that thread.
  virtual void use_in_thread() const {}
  /// The queue of the operations (a stream of its backend), for libraries that queue work of their own; null
  /// where there is none.
  virtual void* stream() noexcept { return nullptr; }
  /// Copies between device memory and plain host memory, complete on return. For checkers, never timed.
  virtual void copy_to_host(void* host, const void* device, std::size_t bytes) {
    std::memcpy(host, device, bytes);
  }
  virtual void copy_to_device(void* device, const void* host, std::size_t bytes) {
    std::memcpy(device, host, bytes);
  }

  virtual bool supports(NumType type) const noexcept = 0;
  /// Why no product can be computed at all, because a library is missing or fails; empty where they can.
  virtual std::string no_products() const { return ""; }
  virtual void matmul(NumType type, const Matmul& shape, const void* a, const void* b, void* c) = 0;
  void gemm(NumType type, const GemmShape& shape, const void* a, const void* b, void* c) {
    matmul(type, plain_product(type, shape), a, b, c);
  }
  /// Chooses the fastest way to compute a product on these operands (C is overwritten), complete on return;
  /// nothing where the library chooses by itself.
  virtual std::optional<GemmAlgorithm> tune(NumType, const Matmul&, const void* /*a*/, const void* /*b*/,
                                            void* /*c*/) {
    return {};
  }
  /// Computes the product this way from now on. Throws Error(device) when this device cannot.
  virtual void set_algorithm(NumType, const Matmul&, const GemmAlgorithm&) {}
  /// The operations of a transformer beside matrix products; null where a device has none.
  virtual TrainOps* train_ops() noexcept { return nullptr; }
  /// FLOP/s of a register-resident FMA loop on all threads at once for about `seconds`: this device's own
  /// peak. 0 where a value left the range in which it stays: wrong arithmetic.
  virtual double fma_peak(NumType type, double seconds) = 0;
  /// FLOP/s of dense matrix products in `type` by the maker's figures for this device; 0 where there are
  /// none.
  virtual double nominal_peak_flops(NumType /*type*/) const noexcept { return 0; }

  /// Tells a profiler that is attached (ncu --profile-from-start off) that what it records begins or ends.
  virtual void profile(bool /*begins*/) noexcept {}

  /// The device's own clock while what is queued between the two runs. Where the device has none that can be
  /// read from inside: nothing, and 0. `clock_hz` waits for what `end_clock` queued.
  virtual bool measures_clock() const noexcept { return false; }
  virtual void begin_clock() {}
  virtual void end_clock() {}
  virtual double clock_hz() { return 0; }

  /// Fills with values uniform in [-1, 1), a pure function of (key, element index).
  virtual void fill_uniform(NumType type, void* data, std::size_t count, std::uint64_t key) = 0;
  /// Fills with integers uniform in [-limit, limit], a pure function of (key, element index), exactly
  /// representable.
  virtual void fill_integer(NumType type, void* data, std::size_t count, std::uint64_t key, int limit) = 0;
  /// Order-independent 64-bit digest of the bytes (sum over 8-byte words of mix64(word, index)); see
  /// kernels/digest.hpp.
  virtual std::uint64_t digest(const void* data, std::size_t bytes) = 0;
  /// Of several results of `bytes` each: queued one behind the other, with one wait for all.
  virtual std::vector<std::uint64_t> digests(std::span<const void* const> data, std::size_t bytes);
  /// Marks a result, so that one that is not written again is not taken for a new one. `step` is that of its
  /// rows (kernels/digest.hpp).
  virtual void poison(void* data, std::size_t bytes, std::size_t step);

  /// One pass of a bandwidth kernel over `count` doubles per array by all threads.
  virtual void stream(kernels::StreamOp op, double* a, const double* b, const double* c,
                      std::size_t count) = 0;
  /// Dependent loads in a random cycle over `bytes` of memory, by one thread: `steps`, or as many as links
  /// hold. The cycle is built by the first call; see BrokenLink for a later one.
  virtual ChaseTime chase(void* memory, std::size_t bytes, std::size_t steps, std::uint64_t key) = 0;
  /// One sweep of a RAM pattern over `words` 64-bit words by all threads (see kernels/pattern.hpp).
  virtual void sweep(const kernels::Sweep& sweep, std::uint64_t* words, std::size_t count,
                     kernels::ErrorLog& log) = 0;

  /// Bytes of the last cache before the memory; 0 where only the topology has it (host).
  virtual std::size_t cache_bytes() const noexcept { return 0; }
  /// Memory inside the device and its path to the host (device/memory_ops.hpp); null where it has none of its
  /// own.
  virtual MemoryOps* memory_ops() { return nullptr; }

  /// The payload of a message, written and checked where it lies; the check is complete on return.
  virtual void payload_fill(kernels::PayloadKey key, void* data, std::size_t bytes);
  virtual kernels::PayloadErrors payload_check(kernels::PayloadKey key, const void* data, std::size_t bytes);

  /// Data of exact sums, written and checked where it lies; the check is complete on return. As they stand
  /// for the host.
  virtual void exact_fill(const kernels::ExactLine& line, std::uint64_t first, float* data,
                          std::size_t count);
  virtual kernels::ExactErrors exact_check(const kernels::ExactLine& line, std::uint64_t first,
                                           const float* data, std::size_t count);

  /// The CPUs of thread i, and its NUMA domain (host only; -1 otherwise).
  virtual int numa_of_thread(int thread) const noexcept = 0;
};

/// The host device: `cpus` one per thread (pinned when `pin`), NUMA domain of each in `numa`.
std::unique_ptr<Device> make_host_device(std::vector<int> cpus, std::vector<int> numa, bool pin);

/// Checks which kernels OpenBLAS chose against cpuid. If they are too old for this CPU, sets
/// OPENBLAS_CORETYPE and re-executes the program (before MPI_Init, before any thread); returns when nothing
/// is to be done. The change is recorded in the environment variable ASSAY_BLAS_MEND ("Prescott->SkylakeX")
/// for blas_info().
void select_blas_core(char** argv);

/// "library" -> "OpenBLAS 0.3.21", "file" -> the path it was loaded from, "core" -> "SkylakeX", "parallel" ->
/// "pthreads", "mend" -> "Prescott->SkylakeX", "failed:Prescott->SkylakeX" or "".
std::map<std::string, std::string> blas_info();

}  // namespace assay
