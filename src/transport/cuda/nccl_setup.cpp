// SPDX-License-Identifier: Apache-2.0
// How communicators over NCCL are made, parted and ended.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "transport/agree.hpp"
#include "transport/cuda/nccl_communicator.hpp"

namespace assay::cuda {
namespace {

/// Closing must not wait for a rank that is gone.
constexpr double farewell_s = 5.0;

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
  agree_problem(group, problem);
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

/// NCCL puts these variables, and the same names in its file nccl.conf, above the configuration of a
/// communicator. An empty value is none to NCCL, and keeps it from setting the one of the file. To be called
/// before the first communicator is made; returns what was there.
const std::string& overridden() {
  static std::string was;
  for (const char* name : {"NCCL_COMM_BLOCKING", "NCCL_COMM_SPLIT_SHARE_RESOURCES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value == '\0') continue;
    if (value != nullptr) was += fmt::format(" {}={} (overridden)", name, value);
    setenv(name, "", 1);
  }
  return was;
}

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
  return text + overridden();
}

/// ASSAY_NCCL_BLOCKING: 0, no communicator blocks; 1, all do from the start; not set: as make_blocking()
/// says.
const char* wish() { return set("ASSAY_NCCL_BLOCKING") ? std::getenv("ASSAY_NCCL_BLOCKING") : ""; }

ncclConfig_t configuration(bool blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking || std::strcmp(wish(), "1") == 0 ? 1 : 0;
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
  agree_problem(bootstrap,
                problem_of(me, [&] { made.reset(new NcclCommunicator(nccl, bootstrap, device, settings)); }));
  std::string id;
  const std::string problem = problem_of(me, [&] {
    if (me != 0) return;
    ncclUniqueId unique;
    if (const ncclResult_t result = nccl.get_unique_id(&unique); result != ncclSuccess)
      throw Error(ErrorKind::mpi, fmt::format("ncclGetUniqueId: {}", nccl.get_error_string(result)));
    id.assign(unique.internal, sizeof unique.internal);
  });
  agree_problem(bootstrap, problem);
  id = bootstrap.broadcast_text(id, 0);
  agree_problem(bootstrap, problem_of(me, [&] { made->init(id); }));
  agree_problem(bootstrap, problem_of(me, [&] { made->make_blocking(); }));
  return made;
}

/// Until the communicator can be used. Throws Error(mpi).
void NcclCommunicator::await(ncclComm_t comm, const char* call) {
  const supervisor::InCall inside(*heartbeat_, supervisor::Call::set_up);
  // Before the collector takes it for a hang (supervisor::set_up_s).
  const double until_s = settings_.set_up_s > 0 ? now_s() + settings_.set_up_s : settings_.deadline_s;
  for (;;) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.comm_get_async_error(comm, &state);
    if (asked != ncclSuccess) state = asked;
    if (state == ncclSuccess) return;
    if (state != ncclInProgress)
      throw Error(ErrorKind::mpi, fmt::format("{}: {}", call, nccl_.get_error_string(state)));
    if (now_s() > until_s)
      throw Error(ErrorKind::mpi, fmt::format("{} of {} ranks is not over in time", call, size()));
  }
}

void NcclCommunicator::init(const std::string& id) {
  ncclUniqueId unique;
  std::memcpy(unique.internal, id.data(), std::min(sizeof unique.internal, id.size()));
  ncclConfig_t config = configuration(false);
  ncclComm_t& made = arriving_.emplace_back(nullptr);
  const ncclResult_t result = nccl_.comm_init_rank_config(&made, size(), unique, rank(), &config);
  if (result != ncclSuccess && result != ncclInProgress)
    throw Error(ErrorKind::mpi, fmt::format("ncclCommInitRankConfig: {}", nccl_.get_error_string(result)));
  try {
    await(made, "ncclCommInitRankConfig");
  } catch (const Error&) {
    nccl_.comm_abort(made);
    made = nullptr;  // the abort has waited for the thread that stores it
    throw;
  }
  comm_ = std::exchange(made, nullptr);
}

#ifdef ASSAY_NCCL_SPLIT
/// The part of `whole` that this rank is in; null without a color. Throws Error(mpi). What arrives after that
/// is ended with this object: while the whole is there it may set the flag of a part that failed.
ncclComm_t NcclCommunicator::part_of(ncclComm_t whole, int color, int key, bool blocking) {
  ncclComm_t& part = arriving_.emplace_back(nullptr);
  ncclConfig_t config = configuration(blocking);
  const ncclResult_t result = nccl_.comm_split(whole, color, key, &part, &config);
  if (result != ncclSuccess && result != ncclInProgress)
    throw Error(ErrorKind::mpi, fmt::format("ncclCommSplit: {}", nccl_.get_error_string(result)));
  await(whole, "ncclCommSplit");
  if (part != nullptr) await(part, "ncclCommSplit");
  return std::exchange(part, nullptr);
}
#endif

/// NCCL starts a thread for each call of a communicator that does not block, some tens of microseconds (an
/// estimate), which small messages would be measured with. It is only for setting up, where a rank that never
/// comes must end at the deadline; what works is a part of all its ranks that blocks. Throws Error(mpi).
void NcclCommunicator::make_blocking() {
#ifdef ASSAY_NCCL_SPLIT
  if (nccl_.comm_split == nullptr || *wish() != '\0') return;
  const ncclComm_t part = part_of(comm_, 0, rank(), true);
  parent_ = std::exchange(comm_, part);
  blocks_ = true;
#endif
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key) {
  launch_transfers();
  if (comm_ != nullptr) wait_stream();
  auto part = inner_.split(color, key);
#ifdef ASSAY_NCCL_SPLIT
  const ncclComm_t whole = parent_ != nullptr ? parent_ : comm_;
  // Parts of a part that blocks are made anew.
  if (nccl_.comm_split != nullptr && comm_ != nullptr && blocks_ == (parent_ != nullptr)) {
    std::unique_ptr<NcclCommunicator> made;
    agree_problem(inner_, problem_of(rank(), [&] {
                    if (part == nullptr) return;
                    made.reset(new NcclCommunicator(nccl_, *part, device_, settings_));
                  }));
    agree_problem(inner_, problem_of(rank(), [&] {
                    // MPI has sorted them already.
                    const ncclComm_t own = part_of(whole, part == nullptr ? NCCL_SPLIT_NOCOLOR : color,
                                                   part == nullptr ? 0 : part->rank(), blocks_);
                    if (made == nullptr) return;
                    made->comm_ = own;
                    made->blocks_ = blocks_;
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

std::string NcclCommunicator::doing() const {
  return fmt::format("operation {} ({} of {} bytes{}) on rank {} of {}", operations_, last_.name, last_.bytes,
                     last_.peer < 0 ? std::string() : fmt::format(" with rank {}", last_.peer), rank(),
                     size());
}

/// The rank that the last operation waits for, by its number in the launch; a broadcast waits for the group.
int NcclCommunicator::awaited() const noexcept {
  return last_.call == supervisor::Call::broadcast ? supervisor::no_peer : launch_rank(last_.peer);
}

void NcclCommunicator::give_up(const std::string& reason) {
  // Without this the kernels that wait for another GPU would go on, and whatever waits for this GPU with
  // them.
  if (comm_ != nullptr) abort();
  throw Error(ErrorKind::mpi, "NCCL: " + reason);
}

void NcclCommunicator::abort() noexcept {
  graph_.reset();  // NCCL waits for graphs that hold its operations
  nccl_.comm_abort(std::exchange(comm_, nullptr));
}

/// Ends a communicator without operations. Where it blocks, finalizing is another thread's.
void NcclCommunicator::end(ncclComm_t comm) {
  std::atomic<bool> returned = false;
  ncclResult_t state = ncclInProgress;
  std::thread thread([&] {
    state = nccl_.comm_finalize(comm);
    returned = true;
  });
  const auto open = [&] { return !returned || state == ncclInProgress; };
  for (const double last = now_s() + farewell_s; open() && now_s() < last;)
    if (returned && nccl_.comm_get_async_error(comm, &state) != ncclSuccess) break;
  if (open() || state != ncclSuccess)
    nccl_.comm_abort(comm);
  else
    nccl_.comm_destroy(comm);
  thread.join();
}

void NcclCommunicator::close() noexcept {
  graph_.reset();
  // Another rank may never start the operation that is still queued here.
  const bool healthy = comm_ != nullptr && cuda::queried(cudaStreamQuery(stream_.get())) == cudaSuccess;
  for (const ncclComm_t comm : {std::exchange(comm_, nullptr), std::exchange(parent_, nullptr)}) {
    if (comm == nullptr) continue;
    if (healthy)
      end(comm);
    else
      nccl_.comm_abort(comm);
  }
  for (const ncclComm_t comm : arriving_)
    if (comm != nullptr) nccl_.comm_abort(comm);
}

}  // namespace assay::cuda
