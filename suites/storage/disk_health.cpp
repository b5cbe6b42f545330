// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/disk_health.hpp"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/system.hpp"
#include "suites/storage/folder.hpp"

namespace assay::storage {
namespace {

constexpr double zero_celsius_k = 273;
using Page = std::array<std::uint8_t, 512>;
using Bytes = std::span<const std::uint8_t>;

double little_endian(Bytes bytes) {
  double value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value * 256 + bytes[i];
  return value;
}
double big_endian(Bytes bytes) {
  double value = 0;
  for (const std::uint8_t byte : bytes) value = value * 256 + byte;
  return value;
}

/// The first statistic of a page: of its eight bytes the last says that it is supported and valid.
Bytes first_statistic(std::span<const std::uint8_t, 512> log, unsigned number, std::size_t bytes) {
  constexpr std::size_t at = 8, flags = at + 7;
  constexpr unsigned there = 0xc0;
  if (log[2] != number || (log[flags] & there) != there) return {};
  return log.subspan(at, bytes);
}

/// The value of a parameter of a log page; empty where it is not there.
Bytes parameter(Bytes log, unsigned code) {
  constexpr std::size_t header = 4;
  if (log.size() < header) return {};
  log = log.first(std::min(log.size(), header + log[2] * 256U + log[3]));
  for (std::size_t at = header; at + header <= log.size(); at += header + log[at + 3]) {
    if (log[at] * 256U + log[at + 1] != code) continue;
    const std::size_t bytes = log[at + 3];
    return at + header + bytes <= log.size() ? log.subspan(at + header, bytes) : Bytes();
  }
  return {};
}

/// Data of a command that reads, at most 512 bytes; false where the disk or the driver refuses it.
bool command(const Descriptor& disk, std::span<std::uint8_t> cdb, Page& data) {
  constexpr unsigned timeout_ms = 20000;
  std::array<std::uint8_t, 32> sense{};
  sg_io_hdr_t io{};
  io.interface_id = 'S';
  io.dxfer_direction = SG_DXFER_FROM_DEV;
  io.cmdp = cdb.data();
  io.cmd_len = static_cast<unsigned char>(cdb.size());
  io.dxferp = data.data();
  io.dxfer_len = static_cast<unsigned>(data.size());
  io.sbp = sense.data();
  io.mx_sb_len = sense.size();
  io.timeout = timeout_ms;
  return ::ioctl(disk.get(), SG_IO, &io) == 0 && (io.info & SG_INFO_OK_MASK) == SG_INFO_OK;
}

/// READ LOG EXT of the device statistics, by ATA PASS-THROUGH (16); zeros where it is refused.
Page ata_statistics(const Descriptor& disk, std::uint8_t number) {
  // Protocol PIO data-in, 48-bit; one block of 512 bytes from the disk, counted by the sector count.
  std::array<std::uint8_t, 16> cdb{0x85, 0x09, 0x0e, 0, 0, 0, 1, 0, 0x04, 0, number, 0, 0, 0, 0x2f, 0};
  Page data{};
  return command(disk, cdb, data) ? data : Page{};
}

/// LOG SENSE of the cumulative values of a page.
std::vector<std::uint8_t> scsi_log(const Descriptor& disk, std::uint8_t number) {
  constexpr std::uint8_t cumulative = 0x40;
  Page data{};
  std::array<std::uint8_t, 10> cdb{
      0x4d, 0, static_cast<std::uint8_t>(cumulative | number), 0, 0, 0, 0, data.size() / 256, 0, 0};
  if (!command(disk, cdb, data) || (data[0] & 0x3f) != number) return {};
  return {data.begin(), data.end()};
}

DiskHealth nvme_health(const std::string& controller) {
  const Descriptor fd(::open(("/dev/" + controller).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  alignas(4096) Page log{};
  nvme_admin_cmd get_log_page{};
  get_log_page.opcode = 0x02;
  get_log_page.nsid = 0xffffffff;
  get_log_page.addr = reinterpret_cast<std::uintptr_t>(log.data());
  get_log_page.data_len = log.size();
  get_log_page.cdw10 = 0x02 | (log.size() / 4 - 1) << 16;
  return ::ioctl(fd.get(), NVME_IOCTL_ADMIN_CMD, &get_log_page) == 0 ? parse_nvme(log) : DiskHealth{};
}

}  // namespace

DiskHealth parse_nvme(std::span<const std::uint8_t, 512> log) noexcept {
  return {little_endian(log.subspan(1, 2)), little_endian(log.subspan(5, 1)),
          little_endian(log.subspan(144, 16)), little_endian(log.subspan(160, 16))};
}

DiskHealth parse_ata(std::span<const std::uint8_t, 512> errors,
                     std::span<const std::uint8_t, 512> temperature,
                     std::span<const std::uint8_t, 512> solid_state) noexcept {
  DiskHealth out;
  if (const Bytes uncorrectable = first_statistic(errors, 4, 4); !uncorrectable.empty())
    out.media_errors = little_endian(uncorrectable);
  if (const Bytes current = first_statistic(temperature, 5, 1); !current.empty())
    out.temperature_k = static_cast<std::int8_t>(current[0]) + zero_celsius_k;
  if (const Bytes used = first_statistic(solid_state, 7, 1); !used.empty()) out.percentage_used = used[0];
  return out;
}

DiskHealth parse_scsi(Bytes writes, Bytes reads, Bytes temperature, Bytes solid_state) noexcept {
  constexpr unsigned not_corrected = 6;
  constexpr std::uint8_t no_temperature = 0xff;
  DiskHealth out;
  const Bytes written = parameter(writes, not_corrected), read = parameter(reads, not_corrected);
  if (!written.empty() || !read.empty()) out.media_errors = big_endian(written) + big_endian(read);
  const Bytes current = parameter(temperature, 0);
  if (current.size() >= 2 && current[1] != no_temperature) out.temperature_k = current[1] + zero_celsius_k;
  const Bytes used = parameter(solid_state, 1);
  if (used.size() >= 4) out.percentage_used = used[3];
  return out;
}

DiskHealth health_of(const std::filesystem::path& block, const std::filesystem::path& controller) {
  const std::string disk = block.filename().string();
  if (controller.filename().string().starts_with("nvme")) return nvme_health(controller.filename().string());
  if (!disk.starts_with("sd")) return {};
  const Descriptor fd(::open(("/dev/" + disk).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) return {};
  // libata and host adapters that translate for a SATA disk name its maker so.
  if (read_text((block / "device/vendor").string()).value_or("").starts_with("ATA "))
    return parse_ata(ata_statistics(fd, 4), ata_statistics(fd, 5), ata_statistics(fd, 7));
  return parse_scsi(scsi_log(fd, 0x02), scsi_log(fd, 0x03), scsi_log(fd, 0x0d), scsi_log(fd, 0x11));
}

}  // namespace assay::storage
