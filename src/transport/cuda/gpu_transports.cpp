// SPDX-License-Identifier: Apache-2.0
#include "transport/cuda/cuda_transports.hpp"

#include "base/error.hpp"
#include "transport/agree.hpp"
#ifndef ASSAY_NO_NCCL
#include "transport/cuda/nccl_communicator.hpp"
#endif
#include "transport/cuda/peer_memory.hpp"
#include "transport/cuda/staged_communicator.hpp"

namespace assay {
namespace {

#ifdef ASSAY_NO_NCCL
constexpr const char* no_nccl = "assay was built without the header of NCCL";
#endif

class CudaTransports final : public GpuTransports {
 public:
  std::string nccl_version(std::string& why) const override {
#ifdef ASSAY_NO_NCCL
    why = no_nccl;
    return {};
#else
    const cuda::NcclLibrary* nccl = cuda::nccl_library(why);
    return nccl == nullptr ? std::string() : nccl->version_text();
#endif
  }

#ifdef ASSAY_NO_NCCL
  std::unique_ptr<Communicator> make_nccl(Communicator&, Device&, const GpuSettings&) const override {
    throw Error(ErrorKind::mpi, no_nccl);
  }
#else
  std::unique_ptr<Communicator> make_nccl(Communicator& bootstrap, Device& device,
                                          const GpuSettings& settings) const override {
    std::string why;
    const cuda::NcclLibrary* nccl = cuda::nccl_library(why);
    // A node without NCCL must not leave the others waiting for it.
    agree_problem(bootstrap, nccl == nullptr ? "rank " + std::to_string(bootstrap.rank()) + ": " + why : "");
    return cuda::NcclCommunicator::make(*nccl, bootstrap, device, settings);
  }
#endif

  std::unique_ptr<Communicator> make_staged(Communicator& below, Device& device, bool direct,
                                            supervisor::Heartbeat* heartbeat) const override {
    return std::make_unique<cuda::StagedCommunicator>(below, device, direct, heartbeat);
  }

  std::unique_ptr<PeerMemory> make_peer(Communicator& world, Communicator& group, Device& device,
                                        CopyEngine engine, const GpuSettings& settings) const override {
    return cuda::CudaPeerMemory::make(world, group, device, engine, settings);
  }
};

}  // namespace

const GpuTransports* cuda_transports() {
  static const CudaTransports transports;
  return &transports;
}

std::vector<GpuTransportInfo> cuda_transport_infos() {
#ifdef ASSAY_NO_NCCL
  const GpuTransportInfo nccl{"nccl", false, "not built: no NCCL with CUDA where this was built"};
#else
  const GpuTransportInfo nccl{"nccl", true,
                              "built with NCCL " ASSAY_NCCL_VERSION ", which is opened where a GPU is used"};
#endif
  return {nccl, {"cuda", true, "built: copies between the GPUs of a node, by copy engine or by kernel"}};
}

}  // namespace assay
