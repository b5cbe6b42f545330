// SPDX-License-Identifier: Apache-2.0
// Registered buffers and recorded batches of NCCL.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "transport/agree.hpp"
#include "transport/cuda/nccl_communicator.hpp"

namespace assay::cuda {
namespace {

/// A capture of a stream; ends with the object, whatever happens in between.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    // Other threads connect to other ranks meanwhile, and allocate.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  ~Capture() {
    cudaGraph_t left = nullptr;
    if (open_ && cudaStreamEndCapture(stream_, &left) == cudaSuccess && left != nullptr)
      cudaGraphDestroy(left);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Graph end() {
    open_ = false;
    cudaGraph_t recorded = nullptr;
    check(cudaStreamEndCapture(stream_, &recorded), "cudaStreamEndCapture");
    cudaGraphExec_t made = nullptr;
    const cudaError_t result = cudaGraphInstantiateWithFlags(&made, recorded, 0);
    cudaGraphDestroy(recorded);
    check(result, "cudaGraphInstantiateWithFlags");
    return Graph(made);
  }

 private:
  cudaStream_t stream_;
  bool open_ = true;
};

}  // namespace

class NcclCommunicator::Registered final : public RegisteredMemory {
 public:
  Registered(NcclCommunicator& owner, std::size_t bytes) : owner_(owner), comm_(owner.comm_) {
    void* data = nullptr;
    owner.check(owner.nccl_.mem_alloc(&data, bytes), "ncclMemAlloc");
    memory_ = {static_cast<std::byte*>(data), bytes};
    owner.registered_.push_back(memory_);
  }
  ~Registered() override {
    // A communicator that was given up took its registrations with it.
    if (handle_ != nullptr && owner_.comm_ == comm_ && comm_ != nullptr)
      how_ == Registration::buffer ? owner_.nccl_.comm_deregister(comm_, handle_)
                                   : owner_.nccl_.comm_window_deregister(comm_, handle_);
    std::erase_if(owner_.registered_, [&](const auto& other) { return other.data() == memory_.data(); });
    owner_.nccl_.mem_free(memory_.data());
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  /// Why nothing is registered; empty when it is. Throws Error(mpi).
  std::string enter(Registration how) {
    how_ = how;
    const bool window = how == Registration::window;
    owner_.last_ = {window ? "ncclCommWindowRegister" : "ncclCommRegister", memory_.size(), -1,
                    supervisor::Call::wait};
    owner_.settle(owner_.apart([&] {
      return window ? owner_.nccl_.comm_window_register(comm_, memory_.data(), memory_.size(), &handle_,
                                                        symmetric_window)
                    : owner_.nccl_.comm_register(comm_, memory_.data(), memory_.size(), &handle_);
    }));
    if (handle_ != nullptr) return {};
    // What NCCL cannot register it takes all the same, and says nothing.
    return window ? "NCCL makes no symmetric window here: GPUs must reach each other's memory, and "
                    "NCCL_WIN_ENABLE and NCCL_CUMEM_ENABLE must not be 0"
                  : "NCCL registers no buffer here: NCCL_LOCAL_REGISTER must not be 0";
  }
  std::span<std::byte> bytes() const noexcept override { return memory_; }

 private:
  /// NCCL_WIN_COLL_SYMMETRIC of 2.27 and later.
  static constexpr int symmetric_window = 1;

  NcclCommunicator& owner_;
  ncclComm_t comm_;
  std::span<std::byte> memory_;
  Registration how_ = Registration::buffer;
  void* handle_ = nullptr;
};

bool NcclCommunicator::mine(const void* p) const noexcept {
  return in_arena(device_, p) || std::any_of(registered_.begin(), registered_.end(),
                                             [&](const auto& memory) { return lies_in(memory, p); });
}

std::unique_ptr<RegisteredMemory> NcclCommunicator::allocate(std::size_t bytes, Registration how,
                                                             std::string& why) {
  launch_transfers();
  const bool window = how == Registration::window;
  if ((window ? nccl_.comm_window_register != nullptr : nccl_.comm_register != nullptr) == false) {
    why = fmt::format("NCCL {} registers no {}: {} does", nccl_.version_text(),
                      window ? "symmetric windows" : "buffers", window ? "2.27.3" : "2.19.1");
    return nullptr;
  }
  std::unique_ptr<Registered> made;
  agree_problem(inner_, problem_of(rank(), [&] {
                  if (comm_ == nullptr) throw Error(ErrorKind::mpi, "NCCL: the communicator was given up");
                  made = std::make_unique<Registered>(*this, bytes);
                }));
  std::string refused;
  agree_problem(inner_, problem_of(rank(), [&] { refused = made->enter(how); }));
  for (const std::string& text : inner_.all_gather_text(refused))
    if (why.empty()) why = text;
  return why.empty() ? std::move(made) : nullptr;
}

void NcclCommunicator::record(const std::function<void()>& calls) {
  launch_transfers();
  if (comm_ == nullptr) throw Error(ErrorKind::mpi, "NCCL: the communicator was given up");
  wait_stream();
  graph_.reset();
  Capture capture(stream_.get());
  in_batch_ = true;
  try {
    calls();
  } catch (...) {
    in_batch_ = false;
    throw;
  }
  in_batch_ = false;
  graph_.emplace(capture.end());
}

void NcclCommunicator::replay() {
  if (comm_ == nullptr || !graph_)
    throw Error(ErrorKind::mpi, "NCCL: nothing is recorded, or the communicator was given up");
  cuda::check(cudaGraphLaunch(graph_->get(), stream_.get()), "cudaGraphLaunch");
  wait_stream();
}

}  // namespace assay::cuda
