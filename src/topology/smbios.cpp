// SPDX-License-Identifier: Apache-2.0
#include "topology/smbios.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include "topology/sysfs.hpp"

namespace assay {
namespace {

// One structure: its formatted part and its strings.
struct Structure {
  int type = 0;
  std::string_view formatted;
  std::vector<std::string> strings;

  std::uint64_t integer(std::size_t offset, std::size_t bytes) const {
    if (offset + bytes > formatted.size()) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(formatted[offset + i])} << (8 * i);
    }
    return value;
  }
  std::string text(std::size_t offset) const {
    const std::size_t index = integer(offset, 1);
    return index == 0 || index > strings.size() ? std::string{} : firmware_text(strings[index - 1]);
  }
};

// Takes the structure at the front of `rest`; false at the end or where the bytes make no sense.
bool take(std::string_view& rest, Structure& found) {
  if (rest.size() < 4) return false;
  const auto length = static_cast<unsigned char>(rest[1]);
  if (length < 4 || length > rest.size()) return false;
  found = {static_cast<unsigned char>(rest[0]), rest.substr(0, length), {}};
  rest.remove_prefix(length);
  if (rest.size() >= 2 && rest[0] == '\0' && rest[1] == '\0') {
    rest.remove_prefix(2);
    return true;
  }
  while (!rest.empty() && rest[0] != '\0') {
    const auto end = rest.find('\0');
    if (end == std::string_view::npos) return false;
    found.strings.push_back(sysfs::clean(std::string(rest.substr(0, end))));
    rest.remove_prefix(end + 1);
  }
  if (rest.empty()) return false;
  rest.remove_prefix(1);
  return true;
}

// The first three fields are little-endian on the wire (SMBIOS 2.6 and later, as the kernel prints them).
std::string uuid_text(const Structure& structure) {
  if (structure.formatted.size() < 0x18) return {};
  static constexpr int order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned>(structure.integer(8 + static_cast<std::size_t>(order[i]), 1));
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

double module_bytes(const Structure& s) {
  const std::uint64_t size = s.integer(0x0c, 2);
  if (size == 0xffff) return unsupported;
  if (size == 0x7fff) return static_cast<double>(s.integer(0x1c, 4) & 0x7fffffffU) * 1048576.0;
  return (size & 0x8000) != 0 ? static_cast<double>(size & 0x7fff) * 1024.0
                              : static_cast<double>(size) * 1048576.0;
}

double module_speed(const Structure& s, std::size_t offset, std::size_t extended) {
  const std::uint64_t speed = s.integer(offset, 2);
  if (speed == 0) return unsupported;
  if (speed != 0xffff) return static_cast<double>(speed);
  const std::uint64_t more = s.integer(extended, 4) & 0x7fffffffU;
  return more == 0 ? unsupported : static_cast<double>(more);
}

struct Channel {
  double mt_s = 0, bytes_wide = 0;
};

// Bandwidth needs every module's channel, speed and width; one unknown and the sum would be wrong.
class ChannelSum {
 public:
  void add(const Structure& s, const Dimm& dimm, const std::string& bank) {
    const std::string name = memory_channel(s.text(0x10), bank);
    const std::uint64_t width_bits = s.integer(0x0a, 2);
    if (name.empty() || std::isnan(dimm.configured_mt_s) || width_bits == 0 || width_bits == 0xffff) {
      complete_ = false;
      return;
    }
    Channel& channel = channels_[name];
    // Modules of one channel run at one speed, the slower one's.
    channel.mt_s = channel.mt_s > 0 ? std::min(channel.mt_s, dimm.configured_mt_s) : dimm.configured_mt_s;
    channel.bytes_wide = std::max(channel.bytes_wide, static_cast<double>(width_bits) / 8);
  }
  double bytes_per_s() const {
    if (!complete_ || channels_.empty()) return unsupported;
    double sum = 0;
    for (const auto& [name, channel] : channels_) sum += channel.mt_s * 1e6 * channel.bytes_wide;
    return sum;
  }

 private:
  bool complete_ = true;
  std::map<std::string, Channel> channels_;
};

// Boards that call every slot "DIMM 0" tell them apart by bank only; as a last resort by order.
void make_slots_unique(std::vector<Dimm>& dimms, const std::vector<std::string>& banks) {
  std::map<std::string, int> uses;
  for (const auto& dimm : dimms) ++uses[dimm.slot];
  for (std::size_t i = 0; i < dimms.size(); ++i) {
    if (dimms[i].slot.empty()) dimms[i].slot = "slot";
    if (uses[dimms[i].slot] > 1 && !banks[i].empty()) dimms[i].slot = banks[i] + " " + dimms[i].slot;
  }
  std::map<std::string, int> seen;
  for (auto& dimm : dimms) {
    const int n = ++seen[dimm.slot];
    if (n > 1) dimm.slot += " #" + std::to_string(n);
  }
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// "NODE 1 CHANNEL 2 DIMM 0" -> "NODE 1 CHANNEL 2"; "P0 CHANNEL A" stays; "CPU0_ChannelB_Dimm1" ->
// "CPU0_CHANNELB".
std::string channel_phrase(const std::string& text) {
  const auto word = text.find("CHANNEL");
  if (word == std::string::npos) return {};
  auto end = word + 7;
  while (end < text.size() && (text[end] == ' ' || text[end] == '_' || text[end] == '#')) ++end;
  const auto start = end;
  while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
  return end == start ? std::string{} : text.substr(0, end);
}

// "P1-DIMMA1", "CPU1_DIMM_A1", "DIMM_B2": the letter is the channel, the digit the slot on it. A bare "A1" is
// not taken: there the letter may as well be the socket.
std::string letter_phrase(const std::string& text) {
  const auto word = text.rfind("DIMM");
  if (word == std::string::npos || text.size() < word + 6) return {};
  std::string tail = text.substr(word + 4);
  tail.erase(
      std::remove_if(tail.begin(), tail.end(), [](char c) { return c == '_' || c == ' ' || c == '-'; }),
      tail.end());
  if (tail.size() != 2 || tail[0] < 'A' || tail[0] > 'P' ||
      !std::isdigit(static_cast<unsigned char>(tail[1])))
    return {};
  return text.substr(0, text.size() - 1);
}

}  // namespace

std::string firmware_text(const std::string& text) {
  const std::string clean = sysfs::clean(text);
  const std::string probe = upper(clean);
  for (const char* filler :
       {"UNKNOWN", "NOT SPECIFIED", "NO DIMM", "NONE", "N/A", "DEFAULT STRING", "TO BE FILLED BY O.E.M.",
        "NOT AVAILABLE", "SYSTEM SERIAL NUMBER", "00000000", "0", "EMPTY", "UNDEFINED"}) {
    if (probe == filler) return {};
  }
  return clean;
}

bool usable_uuid(const std::string& uuid) {
  if (uuid.size() != 36) return false;
  std::string hex;
  for (const char c : uuid) {
    if (c != '-') hex += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
  if (hex.find_first_not_of(hex[0]) == std::string::npos) return false;
  return hex != "03000200040005000006000700080009" && hex != "00020003000400050006000700080009";
}

std::string memory_channel(const std::string& slot, const std::string& bank) {
  const std::string slot_text = upper(slot), bank_text = upper(bank);
  for (const std::string& text : {bank_text, slot_text}) {
    const std::string found = channel_phrase(text);
    if (!found.empty()) return found;
  }
  return letter_phrase(slot_text);
}

SmbiosTables parse_smbios(const std::string& bytes) {
  SmbiosTables tables;
  std::vector<std::string> banks;
  ChannelSum channels;
  std::string_view rest = bytes;
  for (Structure s; take(rest, s) && s.type != 127;) {
    if (s.type == 1 && tables.system_uuid.empty()) {
      const std::string uuid = uuid_text(s);
      if (usable_uuid(uuid)) tables.system_uuid = uuid;
    }
    if (s.type != 17 || s.formatted.size() < 0x15) continue;
    if (s.integer(0x0c, 2) == 0) {
      ++tables.empty_slots;
      continue;
    }
    Dimm dimm{s.text(0x10), s.text(0x1a), s.text(0x17)};
    dimm.bytes = module_bytes(s);
    dimm.speed_mt_s = module_speed(s, 0x15, 0x54);
    dimm.configured_mt_s = module_speed(s, 0x20, 0x58);
    banks.push_back(s.text(0x11));
    channels.add(s, dimm, banks.back());
    tables.dimms.push_back(std::move(dimm));
    tables.dimm_serials.push_back(s.text(0x18));
  }
  make_slots_unique(tables.dimms, banks);
  tables.memory_bandwidth_bytes_per_s = channels.bytes_per_s();
  return tables;
}

}  // namespace assay
