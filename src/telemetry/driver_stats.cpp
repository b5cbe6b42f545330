// SPDX-License-Identifier: Apache-2.0
#include "telemetry/driver_stats.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <vector>

#include "base/system.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

/// More is no driver's list but a mistake.
constexpr std::uint32_t most_stats = 65536;

/// "     rx_crc_errors_phy: 12"
std::map<std::string, double> from_text(const std::string& text) {
  std::map<std::string, double> stats;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.rfind(':'), begin = line.find_first_not_of(" \t");
    if (colon == std::string::npos || begin >= colon || colon + 1 >= line.size()) continue;
    const double value = sysfs::leading_number(line.substr(colon + 1));
    if (value >= 0) stats[line.substr(begin, colon - begin)] = value;
  }
  return stats;
}

/// A command whose answer ends in an array of unknown length.
template <class Head>
bool ask(int fd, const std::string& interface, Head head, std::size_t bytes, std::vector<std::byte>& answer) {
  ifreq request{};
  if (interface.size() >= sizeof request.ifr_name) return false;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size() + 1);
  answer.assign(sizeof head + bytes, std::byte{});
  std::memcpy(answer.data(), &head, sizeof head);
  request.ifr_data = reinterpret_cast<char*>(answer.data());
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

std::map<std::string, double> from_driver(int fd, const std::string& interface) {
  std::map<std::string, double> stats;
  std::vector<std::byte> answer;
  ethtool_sset_info sets{};
  sets.cmd = ETHTOOL_GSSET_INFO;
  sets.sset_mask = 1ULL << ETH_SS_STATS;
  std::uint32_t count = 0;
  if (!ask(fd, interface, sets, sizeof count, answer)) return stats;
  std::memcpy(&sets, answer.data(), sizeof sets);
  std::memcpy(&count, answer.data() + sizeof sets, sizeof count);
  if (sets.sset_mask == 0 || count == 0 || count > most_stats) return stats;
  ethtool_gstrings strings{};
  strings.cmd = ETHTOOL_GSTRINGS;
  strings.string_set = ETH_SS_STATS;
  strings.len = count;
  std::vector<std::byte> names;
  ethtool_stats values{};
  values.cmd = ETHTOOL_GSTATS;
  values.n_stats = count;
  if (!ask(fd, interface, strings, std::size_t{count} * ETH_GSTRING_LEN, names) ||
      !ask(fd, interface, values, std::size_t{count} * sizeof(std::uint64_t), answer))
    return stats;
  // The number of queues may have changed in between: only what both answers hold.
  std::memcpy(&strings, names.data(), sizeof strings);
  std::memcpy(&values, answer.data(), sizeof values);
  for (std::uint32_t i = 0; i < std::min({count, strings.len, values.n_stats}); ++i) {
    const char* name =
        reinterpret_cast<const char*>(names.data() + sizeof strings + std::size_t{i} * ETH_GSTRING_LEN);
    std::uint64_t value = 0;
    std::memcpy(&value, answer.data() + sizeof values + std::size_t{i} * sizeof value, sizeof value);
    const std::string clean = sysfs::clean(std::string(name, strnlen(name, ETH_GSTRING_LEN)));
    if (!clean.empty()) stats[clean] = static_cast<double>(value);
  }
  return stats;
}

}  // namespace

std::map<std::string, double> driver_stats(const std::string& place) {
  if (place.starts_with('/')) return from_text(read_text(place).value_or(""));
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  auto stats = from_driver(fd, place);
  close(fd);
  return stats;
}

DriverStat kind_of_driver_stat(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto has = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return lower.find(word) != std::string::npos; });
  };
  if (has({"xdp", "_corrected"})) return DriverStat::other;  // FEC mends bits all day long
  if (has({"pause", "cnp", "ecn", "discard", "out_of_buffer", "xoff", "no_buffer", "missed_errors"}))
    return DriverStat::flow;
  if (has({"crc", "symbol_err", "uncorrectable", "fcs_err", "align_err", "link_down_events", "jabber"}))
    return DriverStat::error;
  return DriverStat::other;
}

}  // namespace assay
