// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <sstream>

#include "base/system.hpp"
#include "topology/probe_parts.hpp"

namespace assay {
namespace {

bool reaches_others(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) {  // 169.254.0.0/16 is link-local: that of a board's own controller
    const auto* in = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(in->sin_addr.s_addr) >> 16 != 0xA9FE;
  }
  return address->sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

std::optional<std::set<std::string>> addressed_interfaces(const std::string& root) {
  std::set<std::string> names;
  if (!root.empty()) {
    const auto text = read_text(root + "/addressed");
    if (!text) return std::nullopt;
    std::istringstream words(*text);
    for (std::string name; words >> name;) names.insert(name);
    return names;
  }
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    std::string name = entry->ifa_name;
    name.resize(std::min(name.find(':'), name.size()));  // an alias: eth0:1
    if (reaches_others(entry->ifa_addr)) names.insert(std::move(name));
  }
  freeifaddrs(list);
  return names;
}

}  // namespace assay
