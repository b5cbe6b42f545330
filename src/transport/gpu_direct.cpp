// SPDX-License-Identifier: Apache-2.0
#include "transport/gpu_direct.hpp"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif
#include <unistd.h>

#include <array>
#include <csignal>

#include "base/error.hpp"

namespace assay {
namespace {

extern "C" void explain_fault(int signal) {
  static constexpr char text[] = "assay: this MPI cannot use GPU memory: run with --p2p.gpu-direct off\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
  raise(signal);  // SA_RESETHAND: the ordinary end follows
}

/// Says what a segmentation fault means while it lives.
class Explained {
 public:
  Explained() {
    struct sigaction action = {};
    action.sa_handler = explain_fault;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Explained() { sigaction(SIGSEGV, &before_, nullptr); }
  Explained(const Explained&) = delete;
  Explained& operator=(const Explained&) = delete;

 private:
  struct sigaction before_ = {};
};

/// Collective: what `step` says or throws on the first rank that has something to say.
template <typename Step>
std::string first_word(Communicator& mpi, const Step& step) {
  std::string mine;
  try {
    mine = step();
  } catch (const Error& e) {
    mine = "rank " + std::to_string(mpi.rank()) + ": " + e.what();
  }
  for (const std::string& text : mpi.all_gather_text(mine))
    if (!text.empty()) return text;
  return {};
}

/// Collective. A GPU that fails alone delays no rank.
std::string exchange(Communicator& mpi, Device& device, std::size_t bytes) {
  constexpr std::uint64_t seed = 0x9cd1;
  const int me = mpi.rank(), ranks = mpi.size(), next = (me + 1) % ranks, previous = (me + ranks - 1) % ranks;
  std::byte *out = device.arena().data(), *in = out + device.arena().size() / 2;
  const std::string trouble = first_word(mpi, [&] {
    device.payload_fill(kernels::payload_key(seed, me, next, bytes), out, bytes);
    device.payload_fill(kernels::payload_key(~seed, me, next, bytes), in, bytes);
    device.synchronize();
    return std::string();
  });
  if (!trouble.empty()) return trouble;
  std::array<Request, 2> requests;
  mpi.irecv(in, bytes, previous, payload_tag, requests[0]);
  mpi.isend(out, bytes, next, payload_tag, requests[1]);
  mpi.wait_all(requests);
  return first_word(mpi, [&] {
    const auto errors = device.payload_check(kernels::payload_key(seed, previous, me, bytes), in, bytes);
    if (errors.count == 0) return std::string();
    return "rank " + std::to_string(me) + ": " + std::to_string(errors.count) + " wrong words in " +
           std::to_string(bytes) + " bytes from rank " + std::to_string(previous);
  });
}

}  // namespace

bool mpi_says_cuda() {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPICH_NUMVERSION) && defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported != 0;
#else
  return false;
#endif
}

std::string test_gpu_direct(Communicator& mpi, Device& device) {
  const Explained explained;
  for (const std::size_t bytes : {std::size_t{1} << 10, std::size_t{4} << 20})
    if (const std::string text = exchange(mpi, device, bytes); !text.empty()) return text;
  return {};
}

}  // namespace assay
