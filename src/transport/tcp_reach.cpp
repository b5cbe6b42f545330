// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_reach.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "supervisor/rendezvous.hpp"

namespace assay {
namespace {

std::optional<sockaddr_in> address_of(const std::string& interface) {
  std::optional<sockaddr_in> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr && !found; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET || interface != entry->ifa_name)
      continue;
    found = *reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    found->sin_port = 0;
  }
  freeifaddrs(list);
  return found;
}

std::string text_of(const sockaddr_in& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
}

bool connected(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

TcpReach::TcpReach(const std::string& interface) {
  const auto own = address_of(interface);
  if (!own) return;
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<const sockaddr*>(&*own), sizeof *own) != 0 ||
      listen(listener_, SOMAXCONN) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return;
  address_ = text_of(bound);
}

TcpReach::~TcpReach() {
  if (listener_ >= 0) close(listener_);
}

std::vector<std::size_t> TcpReach::silent(std::span<const std::string> addresses, double seconds) const {
  std::vector<std::size_t> out;
  std::vector<pollfd> waiting;
  std::vector<std::size_t> index;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const auto colon = addresses[i].find(':');
    if (colon == std::string::npos) continue;
    std::uint16_t port = 0;
    std::from_chars(addresses[i].data() + colon + 1, addresses[i].data() + addresses[i].size(), port);
    // The kernel chooses the way, as it does for messages.
    const int fd = supervisor::start_connect(addresses[i].substr(0, colon), port);
    if (fd < 0) {
      out.push_back(i);
      continue;
    }
    waiting.push_back({fd, POLLOUT, 0});
    index.push_back(i);
  }
  for (const double end = now_s() + seconds; !waiting.empty() && now_s() < end;) {
    poll(waiting.data(), waiting.size(), static_cast<int>(std::max(1.0, (end - now_s()) * 1e3)));
    for (std::size_t i = waiting.size(); i-- > 0;) {
      if (waiting[i].revents == 0) continue;
      if (!connected(waiting[i].fd)) out.push_back(index[i]);
      close(waiting[i].fd);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
      index.erase(index.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    close(waiting[i].fd);
    out.push_back(index[i]);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace assay
