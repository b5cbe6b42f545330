// SPDX-License-Identifier: Apache-2.0
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "topology/probe_parts.hpp"
#include "topology/sysfs.hpp"

namespace assay {
namespace {

constexpr int kMaskWords = 127;  // the interface counts words in a signed byte

// The structure ends in a flexible array of masks (supported, advertised, of the peer), so room is given as
// bytes.
struct LinkSettings {
  alignas(ethtool_link_settings)
      std::byte room[sizeof(ethtool_link_settings) + 3 * kMaskWords * sizeof(std::uint32_t)];

  explicit LinkSettings(int words) : room{} {
    ethtool_link_settings head{};
    head.cmd = ETHTOOL_GLINKSETTINGS;
    head.link_mode_masks_nwords = static_cast<std::int8_t>(words);
    std::memcpy(room, &head, sizeof head);
  }
  int words() const {
    ethtool_link_settings head{};
    std::memcpy(&head, room, sizeof head);
    return head.link_mode_masks_nwords;
  }
  std::uint32_t supported(int word) const {
    std::uint32_t value = 0;
    std::memcpy(&value, room + sizeof(ethtool_link_settings) + static_cast<std::size_t>(word) * sizeof value,
                sizeof value);
    return value;
  }
};

bool ask(int socket, const std::string& interface, void* command) {
  ifreq request{};
  if (interface.size() >= sizeof request.ifr_name) return false;
  std::memcpy(request.ifr_name, interface.c_str(), interface.size() + 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(socket, SIOCETHTOOL, &request) == 0;
}

struct Mode {
  int bit;
  double gbit_per_s;
};

// One representative set of the link modes of linux/ethtool.h: a port with a speed supports at least one
// of them.
constexpr Mode kModes[] = {
    {ETHTOOL_LINK_MODE_1000baseT_Full_BIT, 1},       {ETHTOOL_LINK_MODE_1000baseKX_Full_BIT, 1},
    {ETHTOOL_LINK_MODE_1000baseX_Full_BIT, 1},       {ETHTOOL_LINK_MODE_2500baseT_Full_BIT, 2.5},
    {ETHTOOL_LINK_MODE_2500baseX_Full_BIT, 2.5},     {ETHTOOL_LINK_MODE_5000baseT_Full_BIT, 5},
    {ETHTOOL_LINK_MODE_10000baseT_Full_BIT, 10},     {ETHTOOL_LINK_MODE_10000baseKX4_Full_BIT, 10},
    {ETHTOOL_LINK_MODE_10000baseKR_Full_BIT, 10},    {ETHTOOL_LINK_MODE_10000baseCR_Full_BIT, 10},
    {ETHTOOL_LINK_MODE_10000baseSR_Full_BIT, 10},    {ETHTOOL_LINK_MODE_10000baseLR_Full_BIT, 10},
    {ETHTOOL_LINK_MODE_20000baseKR2_Full_BIT, 20},   {ETHTOOL_LINK_MODE_25000baseCR_Full_BIT, 25},
    {ETHTOOL_LINK_MODE_25000baseKR_Full_BIT, 25},    {ETHTOOL_LINK_MODE_25000baseSR_Full_BIT, 25},
    {ETHTOOL_LINK_MODE_40000baseKR4_Full_BIT, 40},   {ETHTOOL_LINK_MODE_40000baseCR4_Full_BIT, 40},
    {ETHTOOL_LINK_MODE_40000baseSR4_Full_BIT, 40},   {ETHTOOL_LINK_MODE_40000baseLR4_Full_BIT, 40},
    {ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT, 50},   {ETHTOOL_LINK_MODE_50000baseKR2_Full_BIT, 50},
    {ETHTOOL_LINK_MODE_50000baseSR2_Full_BIT, 50},   {ETHTOOL_LINK_MODE_50000baseKR_Full_BIT, 50},
    {ETHTOOL_LINK_MODE_50000baseCR_Full_BIT, 50},    {ETHTOOL_LINK_MODE_50000baseSR_Full_BIT, 50},
    {ETHTOOL_LINK_MODE_100000baseKR4_Full_BIT, 100}, {ETHTOOL_LINK_MODE_100000baseSR4_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_100000baseCR4_Full_BIT, 100}, {ETHTOOL_LINK_MODE_100000baseLR4_ER4_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_100000baseKR2_Full_BIT, 100}, {ETHTOOL_LINK_MODE_100000baseCR2_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_100000baseSR2_Full_BIT, 100}, {ETHTOOL_LINK_MODE_100000baseKR_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_100000baseCR_Full_BIT, 100},  {ETHTOOL_LINK_MODE_100000baseSR_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_200000baseKR4_Full_BIT, 200}, {ETHTOOL_LINK_MODE_200000baseSR4_Full_BIT, 200},
    {ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT, 200}, {ETHTOOL_LINK_MODE_200000baseKR2_Full_BIT, 200},
    {ETHTOOL_LINK_MODE_200000baseCR2_Full_BIT, 200}, {ETHTOOL_LINK_MODE_200000baseSR2_Full_BIT, 200},
    {ETHTOOL_LINK_MODE_400000baseKR8_Full_BIT, 400}, {ETHTOOL_LINK_MODE_400000baseSR8_Full_BIT, 400},
    {ETHTOOL_LINK_MODE_400000baseCR8_Full_BIT, 400}, {ETHTOOL_LINK_MODE_400000baseKR4_Full_BIT, 400},
    {ETHTOOL_LINK_MODE_400000baseSR4_Full_BIT, 400}, {ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT, 400},
};

double highest_rate(int socket, const std::string& interface) {
  // The first call answers with the negative number of words the kernel's masks have; the second fills them.
  LinkSettings question(0);
  if (!ask(socket, interface, &question) || question.words() >= 0) return unsupported;
  const int words = -question.words();
  if (words > kMaskWords) return unsupported;
  LinkSettings settings(words);
  if (!ask(socket, interface, &settings) || settings.words() != words) return unsupported;
  double highest = 0;
  for (const Mode& mode : kModes) {
    const int word = mode.bit / 32;
    if (word < words && (settings.supported(word) >> (mode.bit % 32) & 1U) != 0)
      highest = std::max(highest, mode.gbit_per_s);
  }
  return highest > 0 ? highest * 1e9 / 8 : unsupported;
}

}  // namespace

EthtoolFacts ethtool_facts(const std::string& interface) {
  EthtoolFacts facts;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return facts;
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (ask(fd, interface, &info)) {
    info.driver[sizeof info.driver - 1] = info.fw_version[sizeof info.fw_version - 1] = '\0';
    facts.driver = sysfs::clean(info.driver);
    const std::string firmware = sysfs::clean(info.fw_version);
    if (firmware != "N/A") facts.firmware = firmware;
  }
  facts.max_rate_bytes_per_s = highest_rate(fd, interface);
  close(fd);
  return facts;
}

}  // namespace assay
