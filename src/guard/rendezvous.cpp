// SPDX-License-Identifier: Apache-2.0
#include "guard/rendezvous.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/random.hpp"

namespace assay::guard {
namespace {

constexpr std::size_t most_hosts = 64;
constexpr std::size_t most_bytes = 8192;

std::string path_of(const std::string& folder, const std::string& job) {
  char name[40];
  std::snprintf(name, sizeof name, ".assay-guard-%016llx", static_cast<unsigned long long>(hash_text(job)));
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
  const Json json = {{"proof", address.proof}, {"answer", address.answer}, {"hosts", address.hosts}, {"port", address.port}};
  return json.dump();
}

std::optional<Address> address_from(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    Address address{json.at("proof"), json.at("answer"), json.at("hosts"), json.at("port")};
    if (address.proof.size() != 32 || address.answer.size() != 32 || address.hosts.size() > most_hosts) return std::nullopt;
    return address;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw Error(ErrorKind::resource, "the kernel gives no random numbers for the guardians' token");
  std::string out;
  for (const unsigned char b : bytes) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", b);
    out += hex;
  }
  return out;
}

std::string job_name() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_orte_ess_jobid", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "PALS_APID"}) {
    const std::string job = value(name);
    if (!job.empty()) return job + "/" + value("SLURM_JOB_ID") + "/" + value("OMPI_MCA_orte_hnp_uri");
  }
  if (const std::string job = value("SLURM_JOB_ID"); !job.empty()) return job + "." + value("SLURM_STEP_ID");
  return "";
}

RendezvousFile::RendezvousFile(const std::string& folder, const std::string& job, const Address& address) noexcept {
  if (job.empty()) return;
  try {
    const std::string path = path_of(folder, job), text = to_text(address), fresh = path + "." + address.proof.substr(0, 8);
    const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    // A file of the same name is of an earlier launch that was killed; readers that meet it fail at its token.
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

int listen_on(bool loopback_only, Address& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof in;
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&in), sizeof in) != 0 || listen(fd, 1024) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&in), &size) != 0)
    throw Error(ErrorKind::resource, std::string("guardians cannot listen on TCP: ") + std::strerror(errno));
  address.port = ntohs(in.sin_port);
  address.hosts = loopback_only ? std::vector<std::string>{"127.0.0.1"} : own_addresses();
  return fd;
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

}  // namespace assay::guard
