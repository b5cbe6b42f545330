// SPDX-License-Identifier: Apache-2.0
#include "supervisor/rendezvous.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "supervisor/handshake.hpp"

namespace assay::supervisor {
namespace {

constexpr std::size_t most_hosts = 64;
constexpr std::size_t most_bytes = 8192;

std::string path_of(const std::string& folder, const std::string& job) {
  char name[40];
  std::snprintf(name, sizeof name, ".assay-supervisor-%016llx",
                static_cast<unsigned long long>(hash_text(job)));
  return (folder.empty() ? std::string(".") : folder) + "/" + name;
}

/// Addresses under which other machines may reach this one; link-local ones need a scope and are left out.
std::vector<std::string> own_addresses() {
  std::vector<std::string> hosts;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return hosts;
  for (const ifaddrs* i = list; i != nullptr && hosts.size() < most_hosts; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN];
    const auto* in = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (inet_ntop(AF_INET, &in->sin_addr, text, sizeof text) != nullptr) hosts.emplace_back(text);
  }
  freeifaddrs(list);
  return hosts;
}

}  // namespace

std::string to_text(const Address& address) {
  const Json json = {{"key", address.key}, {"hosts", address.hosts}, {"port", address.port}};
  return json.dump();
}

std::optional<Address> address_from(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    Address address{json.at("key"), json.at("hosts"), json.at("port")};
    if (address.key.size() != 64 || address.hosts.size() > most_hosts) return std::nullopt;
    return address;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string job_name() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  for (const char* name :
       {"PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PALS_APID"}) {
    const std::string job = value(name);
    if (!job.empty()) return job + "/" + value("SLURM_JOB_ID") + "/" + value("OMPI_MCA_orte_hnp_uri");
  }
  if (const std::string job = value("SLURM_JOB_ID"); !job.empty()) return job + "." + value("SLURM_STEP_ID");
  return "";
}

RendezvousFile::RendezvousFile(const std::string& folder, const std::string& job,
                               const Address& address) noexcept {
  if (job.empty()) return;
  try {
    const std::string path = path_of(folder, job), text = to_text(address),
                      fresh = path + "." + random_token().substr(0, 8);
    const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    // A file of the same name is of an earlier launch that was killed; readers that meet it fail at its key.
    if (whole && rename(fresh.c_str(), path.c_str()) == 0)
      path_ = path;
    else
      unlink(fresh.c_str());
  } catch (const std::exception&) {
    path_.clear();
  }
}

void RendezvousFile::remove() noexcept {
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

std::optional<Address> RendezvousFile::read(const std::string& folder, const std::string& job) {
  if (job.empty()) return std::nullopt;
  const int fd = open(path_of(folder, job).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  struct stat info {};
  std::string text(most_bytes, '\0');
  const bool ours = fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  const ssize_t n = ours ? ::read(fd, text.data(), text.size()) : -1;
  close(fd);
  if (n <= 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(n));
  return address_from(text);
}

std::vector<std::string> addresses_in(const std::string& text) {
  std::vector<std::string> hosts;
  std::string word;
  for (const char c : text + ",") {
    if ((c >= '0' && c <= '9') || c == '.') {
      word += c;
      continue;
    }
    in_addr parsed;
    if (inet_pton(AF_INET, word.c_str(), &parsed) == 1) hosts.push_back(word);
    word.clear();
  }
  return hosts;
}

namespace {

/// The own address from which a packet to `host` would leave; empty when there is no way.
std::string address_towards(const std::string& host) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(9);
  socklen_t size = sizeof in;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // connecting it sends nothing
  char text[INET_ADDRSTRLEN] = "";
  if (fd >= 0 && inet_pton(AF_INET, host.c_str(), &in.sin_addr) == 1 &&
      connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size) == 0)
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  if (fd >= 0) close(fd);
  return text;
}

/// The IPv4 addresses of a host that is given by its name; none when it is unknown.
std::vector<std::string> addresses_of(const std::string& name) {
  std::vector<std::string> hosts;
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  if (name.empty() || getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return hosts;
  for (const addrinfo* i = found; i != nullptr; i = i->ai_next) {
    char text[INET_ADDRSTRLEN];
    const auto* in = reinterpret_cast<const sockaddr_in*>(i->ai_addr);
    if (inet_ntop(AF_INET, &in->sin_addr, text, sizeof text) != nullptr) hosts.emplace_back(text);
  }
  freeaddrinfo(found);
  return hosts;
}

/// The addresses of this machine that the launch uses; none when the launcher tells none. Open MPI 4 and
/// Slurm tell the launcher's address, MPICH's Hydra by which name or address others reach this machine. Open
/// MPI 5 tells its ranks only their own daemon, at 127.0.0.1.
std::vector<std::string> launch_addresses() {
  std::vector<std::string> out;
  for (const char* name :
       {"OMPI_MCA_orte_hnp_uri", "SLURM_LAUNCH_NODE_IPADDR", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME"}) {
    const char* value = std::getenv(name);
    const std::string text = value == nullptr ? "" : value;
    auto hosts = addresses_in(text);
    if (hosts.empty() && std::string_view(name).starts_with("MPIR")) hosts = addresses_of(text);
    for (const std::string& host : hosts) {
      const std::string own = address_towards(host);
      const bool beyond = !own.empty() && !own.starts_with("127.");
      if (beyond && std::find(out.begin(), out.end(), own) == out.end() && out.size() < most_hosts)
        out.push_back(own);
    }
    if (!out.empty()) break;
  }
  return out;
}

int close_with_error(int fd) noexcept {
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

/// A TCP socket bound there; `port` 0 takes any and is set. -1 when that cannot be.
int bind_at(const std::string& host, std::uint16_t& port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  socklen_t size = sizeof in;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
  // Its connections do not keep it from listening again.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || inet_pton(AF_INET, host.c_str(), &in.sin_addr) != 1 ||
      bind(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size) != 0)
    return close_with_error(fd);
  port = ntohs(in.sin_port);
  return fd;
}

/// A socket that listens there. Only a socket bound to a port by its number keeps it while it does not
/// listen.
int listen_at(const std::string& host, std::uint16_t& port) {
  if (port == 0) close_with_error(bind_at(host, port));
  const int fd = port == 0 ? -1 : bind_at(host, port);
  return fd >= 0 && listen(fd, most_in_line) == 0 ? fd : close_with_error(fd);
}

/// The length of the address.
socklen_t local_address(const std::string& name, sockaddr_un& un) noexcept {
  un = {};
  un.sun_family = AF_UNIX;
  name.copy(un.sun_path + 1, sizeof un.sun_path - 1);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                std::min(name.size(), sizeof un.sun_path - 1));
}

}  // namespace

std::vector<int> listen_on(bool loopback_only, Address& address) {
  address.hosts = loopback_only ? std::vector<std::string>{"127.0.0.1"} : launch_addresses();
  std::vector<std::string> at = address.hosts;
  if (at.empty()) {
    at = {"0.0.0.0"};
    address.hosts = own_addresses();
  }
  for (int attempt = 0; attempt < 16;
       ++attempt) {  // a port that is free on one address may be taken on another
    std::vector<int> sockets;
    address.port = 0;
    for (const std::string& host : at) {
      const int fd = listen_at(host, address.port);
      if (fd < 0) break;
      sockets.push_back(fd);
    }
    if (sockets.size() == at.size()) return sockets;
    const int error = errno;
    for (const int fd : sockets) close(fd);
    errno = error;
  }
  throw Error(ErrorKind::resource, std::string("supervisors cannot listen on TCP: ") + std::strerror(errno));
}

int start_connect(const std::string& host, std::uint16_t port) noexcept {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &in.sin_addr) != 1) return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) == 0 || errno == EINPROGRESS) return fd;
  close(fd);
  return -1;
}

int listen_local(const std::string& name) noexcept {
  sockaddr_un un;
  const socklen_t size = local_address(name, un);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&un), size) == 0 && listen(fd, most_in_line) == 0)
    return fd;
  return close_with_error(fd);
}

int connect_local(const std::string& name) noexcept {
  sockaddr_un un;
  const socklen_t size = local_address(name, un);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&un), size) == 0) return fd;
  return close_with_error(fd);
}

}  // namespace assay::supervisor
