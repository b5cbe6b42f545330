// SPDX-License-Identifier: Apache-2.0
// How communicators over NCCL are made, parted and ended.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "transport/cuda/nccl_communicator.hpp"

namespace assay::cuda {
namespace {

/// Closing must not wait for a rank that is gone.
constexpr double farewell_s = 5.0;

/// What one rank could not do is an error of all, in its words.
void agree(Communicator& group, const std::string& problem) {
  for (const std::string& text : group.all_gather_text(problem))
    if (!text.empty()) throw Error(ErrorKind::mpi, text);
}

/// Runs `step`; what went wrong becomes text.
template <typename Step>
std::string problem_of(int rank, Step&& step) {
  try {
    step();
  } catch (const Error& e) {
    return fmt::format("rank {}: {}", rank, e.what());
  }
  return {};
}

/// The GPU of this rank, unique in the world.
std::string my_gpu() {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "cudaGetDevice");
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof properties.uuid.bytes; ++i)
    text += fmt::format("{}{:02x}", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned>(static_cast<unsigned char>(properties.uuid.bytes[i])));
  return text;
}

/// NCCL says the same in words that differ by version, and after half a minute of setting up.
void check_own_gpus(Communicator& group) {
  std::string mine;
  const std::string problem = problem_of(group.rank(), [&] { mine = my_gpu(); });
  agree(group, problem);
  std::map<std::string, int> owner;
  const auto gpus = group.all_gather_text(mine);
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    const auto [first, is_new] = owner.try_emplace(gpus[rank], static_cast<int>(rank));
    if (!is_new)
      throw Error(ErrorKind::mpi, fmt::format("NCCL needs a GPU for each rank, and ranks {} and {} share {}",
                                              first->second, rank, gpus[rank]));
  }
}

bool set(const char* name) { return std::getenv(name) != nullptr && *std::getenv(name) != '\0'; }

/// The version and what decides algorithms and speed.
std::string describe(const NcclLibrary& nccl) {
  int ordinal = 0, major = 0;
  if (cudaGetDevice(&ordinal) == cudaSuccess)
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  std::string text =
      fmt::format("nccl {} nvls:{}", nccl.version_text(),
                  nvls_state(std::getenv("NCCL_NVLS_ENABLE"), std::getenv("NCCL_ALGO"), major));
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",
                           "NCCL_SHM_DISABLE", "NCCL_NET", "NCCL_IB_HCA", "NCCL_SOCKET_IFNAME",
                           "NCCL_NET_GDR_LEVEL", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "ASSAY_NCCL_BLOCKING"})
    if (set(name)) text += fmt::format(" {}={}", name, std::getenv(name));
  return text;
}

/// Communicators do not block, so that a rank that never comes ends at the deadline. Each call then costs
/// NCCL a thread, some tens of microseconds; ASSAY_NCCL_BLOCKING=1 leaves that out to see what it is, and
/// hangs where the default would give up.
ncclConfig_t configuration() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking =
      set("ASSAY_NCCL_BLOCKING") && std::strcmp(std::getenv("ASSAY_NCCL_BLOCKING"), "0") != 0 ? 1 : 0;
  // Resources are not shared with the communicator that it is split from (splitShare): aborting a part would
  // set the flag that both look at, and kernels of the whole would leave their buffers unfilled.
  return config;
}

}  // namespace

std::string nvls_state(const char* nvls_enable, const char* algorithms, int compute_major) {
  const std::string enable = nvls_enable != nullptr ? nvls_enable : "";
  std::string wanted = algorithms != nullptr ? algorithms : "";
  for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (compute_major < 9 || enable == "0")
    return "disabled";  // there is no reduction in switches before Hopper
  const bool barred = !wanted.empty() && wanted.front() == '^';
  const bool named = wanted.find("nvls") != std::string::npos;
  if (!wanted.empty() && named == barred) return "disabled";
  return enable == "1" ? "enabled" : "unknown";
}

NcclCommunicator::NcclCommunicator(const NcclLibrary& nccl, Communicator& bootstrap, Device& device,
                                   const GpuSettings& settings)
    : ForwardingCommunicator(bootstrap),
      nccl_(nccl),
      device_(device),
      settings_(settings),
      heartbeat_(settings.heartbeat != nullptr ? settings.heartbeat : &own_heartbeat_),
      path_(describe(nccl)) {}

NcclCommunicator::~NcclCommunicator() { close(); }

std::unique_ptr<NcclCommunicator> NcclCommunicator::make(const NcclLibrary& nccl, Communicator& bootstrap,
                                                         Device& device, const GpuSettings& settings) {
  check_own_gpus(bootstrap);
  std::unique_ptr<NcclCommunicator> made;
  const int me = bootstrap.rank();
  agree(bootstrap,
        problem_of(me, [&] { made.reset(new NcclCommunicator(nccl, bootstrap, device, settings)); }));
  std::string id;
  const std::string problem = problem_of(me, [&] {
    if (me != 0) return;
    ncclUniqueId unique;
    if (const ncclResult_t result = nccl.get_unique_id(&unique); result != ncclSuccess)
      throw Error(ErrorKind::mpi, fmt::format("ncclGetUniqueId: {}", nccl.get_error_string(result)));
    id.assign(unique.internal, sizeof unique.internal);
  });
  agree(bootstrap, problem);
  id = bootstrap.broadcast_text(id, 0);
  agree(bootstrap, problem_of(me, [&] { made->init(id); }));
  return made;
}

/// Until the communicator can be used. Throws Error(mpi).
void NcclCommunicator::await(ncclComm_t comm, const char* call) {
  const supervisor::InCall inside(*heartbeat_, supervisor::Call::split);
  for (;;) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.comm_get_async_error(comm, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess) return;
    if (state != ncclInProgress)
      throw Error(ErrorKind::mpi, fmt::format("{}: {}", call, nccl_.get_error_string(state)));
    if (now_s() > settings_.deadline_s)
      throw Error(ErrorKind::mpi, fmt::format("{} of {} ranks is not over at the deadline", call, size()));
  }
}

void NcclCommunicator::init(const std::string& id) {
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), std::min(sizeof unique.internal, id.size()));
  ncclConfig_t config = configuration();
  const ncclResult_t result = nccl_.comm_init_rank_config(&comm_, size(), unique, rank(), &config);
  if (result != ncclSuccess && result != ncclInProgress)
    throw Error(ErrorKind::mpi, fmt::format("ncclCommInitRankConfig: {}", nccl_.get_error_string(result)));
  try {
    await(comm_, "ncclCommInitRankConfig");
  } catch (const Error&) {
    nccl_.comm_abort(std::exchange(comm_, nullptr));
    throw;
  }
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  launch_transfers();
  if (comm_ != nullptr) wait_stream();
  auto part = inner_.split(color, key);
#ifdef ASSAY_NCCL_SPLIT
  if (nccl_.comm_split != nullptr && comm_ != nullptr) {
    std::unique_ptr<NcclCommunicator> made;
    agree(inner_, problem_of(rank(), [&] {
            if (part == nullptr) return;
            made.reset(new NcclCommunicator(nccl_, *part, device_, settings_));
          }));
    agree(inner_, problem_of(rank(), [&] {
            ncclComm_t child = nullptr;
            ncclConfig_t config = configuration();
            // MPI has sorted them already.
            const ncclResult_t result = nccl_.comm_split(comm_, part == nullptr ? NCCL_SPLIT_NOCOLOR : color,
                                                         part == nullptr ? 0 : part->rank(), &child, &config);
            if (result != ncclSuccess && result != ncclInProgress)
              throw Error(ErrorKind::mpi, fmt::format("ncclCommSplit: {}", nccl_.get_error_string(result)));
            await(comm_, "ncclCommSplit");
            if (made == nullptr) return;
            made->comm_ = child;
            await(child, "ncclCommSplit");
          }));
    if (made != nullptr) made->owned_ = std::move(part);
    return made;
  }
#endif
  if (part == nullptr) return nullptr;
  auto made = make(nccl_, *part, device_, settings_);
  made->owned_ = std::move(part);
  return made;
}

void NcclCommunicator::close() noexcept {
  if (comm_ == nullptr) return;
  const ncclComm_t comm = std::exchange(comm_, nullptr);
  // Another rank may never start the operation that is still queued here.
  bool healthy = cudaStreamQuery(stream_.get()) == cudaSuccess;
  if (healthy) {
    ncclResult_t state = nccl_.comm_finalize(comm);
    for (const double end = now_s() + farewell_s; state == ncclInProgress && now_s() < end;)
      if (nccl_.comm_get_async_error(comm, &state) != ncclSuccess) break;
    healthy = state == ncclSuccess;
  }
  if (healthy)
    nccl_.comm_destroy(comm);
  else
    nccl_.comm_abort(comm);
}

}  // namespace assay::cuda
