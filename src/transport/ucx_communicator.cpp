// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_communicator.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "transport/agree.hpp"
#include "transport/ucx_worker.hpp"

namespace assay {
namespace {

using supervisor::Call;
using supervisor::InCall;
using ucx::check;
using ucx::what;

/// Closing must not wait for a rank that is gone.
constexpr double farewell_s = 2.0;
constexpr int proof_tag = 32002, size_tag = 32003, address_tag = 32004;

/// What a Request holds: null once it is complete.
ucs_status_ptr_t pending_of(const Request& request) noexcept {
  ucs_status_ptr_t pending = nullptr;
  std::memcpy(&pending, request.storage, sizeof pending);
  return pending;
}
void store(Request& request, ucs_status_ptr_t pending) noexcept {
  request = Request{};
  std::memcpy(request.storage, &pending, sizeof pending);
}

ucp_request_param_t host_buffer() noexcept {
  ucp_request_param_t param;
  std::memset(&param, 0, sizeof param);
  param.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  param.memory_type = UCS_MEMORY_TYPE_HOST;
  return param;
}

/// What each of `partners` gives to the others, by its rank of `world`. Thousands of ranks have a few
/// partners each.
std::map<int, std::string> texts_of(Communicator& world, std::vector<int> partners, const std::string& mine) {
  std::sort(partners.begin(), partners.end());
  partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  const std::uint64_t size = mine.size();
  std::vector<std::uint64_t> sizes(partners.size());
  std::vector<std::string> texts(partners.size());
  std::vector<Request> requests(2 * partners.size());
  const auto exchange = [&](int tag, const void* out, std::size_t bytes, const auto& in) {
    for (std::size_t i = 0; i < partners.size(); ++i) {
      const auto [to, room] = in(i);
      world.irecv(to, room, partners[i], tag, requests[2 * i]);
      world.isend(out, bytes, partners[i], tag, requests[2 * i + 1]);
    }
    world.wait_all(requests);
  };
  exchange(size_tag, &size, sizeof size,
           [&](std::size_t i) { return std::pair<void*, std::size_t>(&sizes[i], sizeof sizes[i]); });
  for (std::size_t i = 0; i < partners.size(); ++i) texts[i].resize(sizes[i]);
  exchange(address_tag, mine.data(), mine.size(),
           [&](std::size_t i) { return std::pair<void*, std::size_t>(texts[i].data(), texts[i].size()); });
  std::map<int, std::string> out;
  for (std::size_t i = 0; i < partners.size(); ++i) out[partners[i]] = std::move(texts[i]);
  return out;
}

/// The same of all ranks of a group.
std::map<int, std::string> texts_of_all(Communicator& world, Communicator& group, const std::string& mine) {
  std::map<int, std::string> out;
  for (const std::string& text : group.all_gather_text(fmt::format("{} {}", world.rank(), mine))) {
    const std::size_t blank = text.find(' ');
    out[std::stoi(text.substr(0, blank))] = text.substr(blank + 1);
  }
  return out;
}

class Ucp final : public UcxCommunicator, private RemoteMemory {
 public:
  Ucp(Communicator& world, const Settings& settings)
      : UcxCommunicator(world),
        world_(world),
        settings_(settings),
        worker_(settings),
        heartbeat_(settings.heartbeat != nullptr ? settings.heartbeat : &own_heartbeat_) {}

  ~Ucp() override {
    finish(flush(), farewell_s);
    for (const auto& [peer, there] : remote_) ucp_rkey_destroy(there.key);
    std::vector<ucs_status_ptr_t> closing;
    for (const auto& [peer, endpoint] : endpoints_)
      closing.push_back(ucp_ep_close_nb(endpoint, UCP_EP_CLOSE_MODE_FLUSH));
    for (const ucs_status_ptr_t request : closing) finish(request, farewell_s);
    if (exposed_ != nullptr) ucp_mem_unmap(worker_.context(), exposed_);
  }
  Ucp(const Ucp&) = delete;
  Ucp& operator=(const Ucp&) = delete;

  std::string my_address() const { return worker_.address(); }
  void find_addresses(Communicator& group, const std::string& mine) { addresses_ = told(group, mine); }

  std::string path() const override {
    std::set<std::string> paths;
    for (const auto& [peer, endpoint] : endpoints_) paths.insert(path_of(endpoint));
    return paths.empty() ? requested() : fmt::format("{}", fmt::join(paths, ","));
  }
  std::string path_to(int peer) const override {
    const auto endpoint = endpoints_.find(peer);
    return endpoint == endpoints_.end() ? requested() : path_of(endpoint->second);
  }

  std::string connect(std::span<const int> peers) override {
    const auto failed = error_of([&] {
      for (const int peer : peers) endpoint_to(peer);
    });
    return failed ? failed->what() : "";
  }

  std::vector<int> silent(std::span<const int> peers, double seconds) override {
    proofs_.assign(peers.size(), {});
    std::vector<int> out;
    const double end = now_s() + seconds;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      Proof& proof = proofs_[i];
      const auto failed = error_of([&] {
        irecv(&proof.in, 1, peers[i], proof_tag, proof.requests[0]);
        isend(&proof.out, 1, peers[i], proof_tag, proof.requests[1]);
      });
      proof.failed = failed.has_value();
    }
    const InCall mark(*heartbeat_, Call::wait, waits_for_);
    for (std::size_t i = 0; i < peers.size(); ++i) {
      bool done = false;
      const auto failed = error_of([&] {
        while (!proofs_[i].failed && !(done = advance(proofs_[i].requests)) && now_s() < end) progress();
      });
      if (done && !failed) continue;  // an error is no answer, and others wait to be told of it
      out.push_back(peers[i]);
      auto& [receive, send] = proofs_[i].requests;
      if (const ucs_status_ptr_t pending = pending_of(receive); pending != nullptr) {
        ucp_request_cancel(worker_.get(), pending);
        finish(pending, farewell_s);
      }
      if (const ucs_status_ptr_t pending = pending_of(send); pending != nullptr) ucp_request_free(pending);
      receive = send = Request{};
    }
    return out;
  }

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    wait(start_send(data, bytes, peer, tag), Call::send, peer);
  }
  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    wait(start_receive(data, bytes, peer, tag), Call::receive, peer);
  }
  void isend(const void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    store(request, started(start_send(data, bytes, peer, tag), "ucp_tag_send_nbx"));
    waits_for_ = launch_rank(peer);
  }
  void irecv(void* data, std::size_t bytes, int peer, int tag, Request& request) override {
    store(request, started(start_receive(data, bytes, peer, tag), "ucp_tag_recv_nbx"));
    waits_for_ = launch_rank(peer);
  }
  void wait_all(std::span<Request> requests) override {
    const InCall mark(*heartbeat_, Call::wait, waits_for_);
    while (!advance(requests)) progress();
  }
  bool test_all(std::span<Request> requests) override {
    progress();
    return advance(requests);
  }
  bool serialized() const noexcept override { return false; }

  RemoteMemory& expose(Communicator& group, std::span<std::byte> memory) override {
    std::string mine;
    agree_problem(group, problem_of(rank(), [&] {
                    mine = fmt::format("{} {}", reinterpret_cast<std::uintptr_t>(memory.data()), map(memory));
                  }));
    for (const auto& [peer, text] : told(group, mine)) {
      const std::size_t blank = text.find(' ');
      keys_[peer] = {std::stoull(text.substr(0, blank)), text.substr(blank + 1)};
    }
    return *this;
  }

 private:
  std::map<int, std::string> told(Communicator& group, const std::string& mine) {
    return settings_.partners ? texts_of(world_, *settings_.partners, mine)
                              : texts_of_all(world_, group, mine);
  }

  /// Of one peer, whether it answers. What UCX may still send lives as long as this object.
  struct Proof {
    std::byte in{}, out{1};
    std::array<Request, 2> requests{};
    bool failed = false;  ///< to start
  };

  /// What another rank exposed: where it begins there, and the key to it on the endpoint.
  struct There {
    std::uint64_t address = 0;
    ucp_rkey_h key = nullptr;
  };

  /// Registers memory; returns its packed key.
  std::string map(std::span<std::byte> memory) {
    ucp_mem_map_params_t params;
    std::memset(&params, 0, sizeof params);
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory.data();
    params.length = memory.size();
    check(ucp_mem_map(worker_.context(), &params, &exposed_), "ucp_mem_map");
    void* packed = nullptr;
    std::size_t bytes = 0;
    check(ucp_rkey_pack(worker_.context(), exposed_, &packed, &bytes), "ucp_rkey_pack");
    std::string key(static_cast<const char*>(packed), bytes);
    ucp_rkey_buffer_release(packed);
    return key;
  }

  const There& at(int peer) {
    const auto known = remote_.find(peer);
    if (known != remote_.end()) [[likely]]
      return known->second;
    const auto key = keys_.find(peer);
    if (key == keys_.end())
      throw Error(ErrorKind::mpi, fmt::format("UCX: rank {} has exposed no memory", peer));
    There there{key->second.first, nullptr};
    check(ucp_ep_rkey_unpack(endpoint_to(peer), key->second.second.data(), &there.key), "ucp_ep_rkey_unpack");
    return remote_[peer] = there;
  }

  void put(const void* data, std::size_t bytes, int peer, std::size_t offset) override {
    const There& there = at(peer);
    const ucp_request_param_t param = host_buffer();
    drop(ucp_put_nbx(endpoint_to(peer), data, bytes, there.address + offset, there.key, &param),
         "ucp_put_nbx");
  }
  void get(void* data, std::size_t bytes, int peer, std::size_t offset) override {
    const There& there = at(peer);
    const ucp_request_param_t param = host_buffer();
    drop(ucp_get_nbx(endpoint_to(peer), data, bytes, there.address + offset, there.key, &param),
         "ucp_get_nbx");
  }
  void complete(int peer) override {
    ucp_request_param_t param;
    std::memset(&param, 0, sizeof param);
    wait(ucp_ep_flush_nbx(endpoint_to(peer), &param), Call::wait, peer);
  }
  /// UCX keeps a request without us until it is done; the flush after it tells when.
  static void drop(ucs_status_ptr_t request, const char* call) {
    if (started(request, call) != nullptr) ucp_request_free(request);
  }

  std::string requested() const {
    const auto or_all = [](const std::string& text) { return text.empty() ? std::string("all") : text; };
    return fmt::format("requested:{}/{}", or_all(settings_.transports), or_all(settings_.devices));
  }
  std::string path_of(ucp_ep_h endpoint) const {
    const std::string path = ucx::endpoint_path(endpoint);
    return path.empty() ? requested() : path;
  }

  std::uint64_t tagged(int source, int tag) const noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32 |
           static_cast<std::uint32_t>(tag);
  }

  ucs_status_t create(int peer) {
    if (endpoints_.contains(peer)) return UCS_OK;
    const auto address = addresses_.find(peer);
    if (address == addresses_.end())
      throw Error(ErrorKind::mpi, fmt::format("UCX: there is no rank {} in this group", peer));
    ucp_ep_params_t params;
    std::memset(&params, 0, sizeof params);
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address->second.data());
    ucp_ep_h endpoint = nullptr;
    const ucs_status_t status = ucp_ep_create(worker_.get(), &params, &endpoint);
    if (status == UCS_OK) endpoints_[peer] = endpoint;
    return status;
  }

  ucp_ep_h endpoint_to(int peer) {
    const auto known = endpoints_.find(peer);
    if (known != endpoints_.end()) [[likely]]
      return known->second;
    const ucs_status_t status = create(peer);
    if (status != UCS_OK) throw Error(ErrorKind::mpi, what(status, fmt::format("no path to rank {}", peer)));
    return endpoints_[peer];
  }

  ucs_status_ptr_t start_send(const void* data, std::size_t bytes, int peer, int tag) {
    const ucp_request_param_t param = host_buffer();
    return ucp_tag_send_nbx(endpoint_to(peer), data, bytes, tagged(rank(), tag), &param);
  }
  ucs_status_ptr_t start_receive(void* data, std::size_t bytes, int peer, int tag) {
    const ucp_request_param_t param = host_buffer();
    return ucp_tag_recv_nbx(worker_.get(), data, bytes, tagged(peer, tag), ~std::uint64_t{0}, &param);
  }
  static ucs_status_ptr_t started(ucs_status_ptr_t request, const char* call) {
    if (UCS_PTR_IS_ERR(request)) throw Error(ErrorKind::mpi, what(UCS_PTR_STATUS(request), call));
    return request;
  }

  void progress() {
    if (ucp_worker_progress(worker_.get()) == 0 && settings_.yield) sched_yield();
  }

  void wait(ucs_status_ptr_t request, Call call, int peer) {
    const InCall mark(*heartbeat_, call, launch_rank(peer));
    if (started(request, to_string(call)) == nullptr) return;
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) progress();
    ucp_request_free(request);
    check(status, to_string(call));
  }

  /// Frees what is complete; true when all are.
  static bool advance(std::span<Request> requests) {
    bool all = true;
    for (Request& request : requests) {
      const ucs_status_ptr_t pending = pending_of(request);
      if (pending == nullptr) continue;
      const ucs_status_t status = ucp_request_check_status(pending);
      if (status == UCS_INPROGRESS) {
        all = false;
        continue;
      }
      ucp_request_free(pending);
      request = Request{};
      check(status, "transfer");
    }
    return all;
  }

  ucs_status_ptr_t flush() {
    ucp_request_param_t param;
    std::memset(&param, 0, sizeof param);
    return ucp_worker_flush_nbx(worker_.get(), &param);
  }

  void finish(ucs_status_ptr_t request, double seconds) noexcept {
    if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
    for (const double end = now_s() + seconds;
         ucp_request_check_status(request) == UCS_INPROGRESS && now_s() < end;)
      progress();
    ucp_request_free(request);
  }

  Communicator& world_;
  Settings settings_;
  ucx::Worker worker_;
  supervisor::Heartbeat own_heartbeat_;  ///< without a supervisor
  supervisor::Heartbeat* heartbeat_;
  std::map<int, std::string> addresses_;  ///< by rank of the world
  std::map<int, ucp_ep_h> endpoints_;
  int waits_for_ = supervisor::no_peer;
  std::vector<Proof> proofs_;
  ucp_mem_h exposed_ = nullptr;
  std::map<int, std::pair<std::uint64_t, std::string>>
      keys_;  ///< address and packed key, by rank of the world
  std::map<int, There> remote_;
};

}  // namespace

std::string UcxCommunicator::version() {
  unsigned major = 0, minor = 0, patch = 0;
  ucp_get_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

std::unique_ptr<UcxCommunicator> UcxCommunicator::make(Communicator& world, Communicator& group,
                                                       const Settings& settings) {
  std::unique_ptr<Ucp> made;
  std::string mine;
  agree_problem(group, problem_of(world.rank(), [&] {
                  made = std::make_unique<Ucp>(world, settings);
                  mine = made->my_address();
                }));
  made->find_addresses(group, mine);
  return made;
}

}  // namespace assay
