// SPDX-License-Identifier: Apache-2.0
#include "run/disk_space.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/error.hpp"
#include "base/units.hpp"
#include "results/partial.hpp"
#include "results/writer.hpp"

namespace assay {
namespace {

constexpr std::uint64_t least_checked = std::uint64_t{64} << 20;

std::string too_little(const std::string& what, std::uint64_t needed, const DiskSpace& space) {
  if (needed < least_checked || needed <= space.free) return "";
  return fmt::format("{} about {} in {}, {} are free", what, format_bytes(needed), space.directory,
                     format_bytes(space.free));
}

}  // namespace

DiskNeed disk_need(const Plan& plan) {
  const std::uint64_t cases = plan.case_files_bytes();
  return {cases, cases + cases / 16};  // as results::merged_bytes
}

std::optional<DiskSpace> disk_space(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  struct statvfs system {};
  struct stat info {};
  if (::statvfs(path.c_str(), &system) != 0 || ::stat(path.c_str(), &info) != 0 || system.f_blocks == 0)
    return std::nullopt;
  return DiskSpace{path.string(), std::uint64_t{system.f_bavail} * system.f_frsize, info.st_dev};
}

std::string lack_of_space(const DiskNeed& need, const std::optional<DiskSpace>& out,
                          const std::optional<DiskSpace>& spool) {
  if (spool && (!out || spool->device != out->device)) {
    const std::string why = too_little("--spool: completed cases need", need.cases, *spool);
    return !why.empty() || !out ? why
                                : too_little("the results file before compression needs", need.merged, *out);
  }
  if (!out) return "";
  const std::string why =
      too_little("completed cases (uncompressed) and the merged results file need", need.sum(), *out);
  return why.empty() || spool ? why : why + "; --spool DIR holds completed cases on another disk";
}

void check_disk_space(const Plan& plan, const Config& config, const std::filesystem::path& file) {
  const std::string spool = config.options.text("spool");
  auto out = disk_space(file.parent_path());
  const std::filesystem::path stale = results::partial_of(file);
  std::error_code none;  // what --force removes
  if (out && config.force && std::filesystem::is_directory(stale, none))
    out->free += results::merged_bytes(stale);
  const std::string why =
      lack_of_space(disk_need(plan), out, spool.empty() ? std::nullopt : disk_space(spool));
  if (!why.empty()) throw Error(ErrorKind::io, file.string() + ": " + why);
}

}  // namespace assay
