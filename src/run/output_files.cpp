// SPDX-License-Identifier: Apache-2.0
#include "run/output_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/system.hpp"
#include "results/carry.hpp"
#include "results/partial.hpp"
#include "results/writer.hpp"
#include "run/run_file.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::optional<fs::file_time_type> time_of(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return std::nullopt;
  return fs::last_write_time(file, none);
}

}  // namespace

OutputFiles::OutputFiles(const Config& config) : config_(config) {
  for (int segment = 1; segment <= config.segments(); ++segment)
    if (const auto time = time_of(file(segment))) before_.emplace(segment, *time);
  remember_owner();
}

fs::path OutputFiles::file(int segment) const { return file_of_segment(config_, segment); }

bool OutputFiles::is_written(int segment) const {
  const auto time = time_of(file(segment));
  const auto at = before_.find(segment);
  return time && (at == before_.end() || *time != at->second);
}

int OutputFiles::written() const {
  int count = 0;
  while (count < config_.segments() && is_written(count + 1)) ++count;
  return count;
}

fs::path OutputFiles::current() const { return file(std::min(written() + 1, config_.segments())); }

fs::path OutputFiles::partial() const { return results::partial_of(current()); }

std::optional<results::Owner> OutputFiles::new_owner() const {
  auto owner = results::read_owner(partial());
  if (owner == owner_before_) owner.reset();
  return owner;
}

bool OutputFiles::partial_is_whole() const {
  // An error of the file system is no sign that nothing was measured.
  std::error_code none;
  const bool planned = fs::status(partial() / "plan.json", none).type() != fs::file_type::not_found;
  return planned && !results::was_taking_over(partial());
}

std::optional<fs::file_time_type> OutputFiles::shown_alive() const { return time_of(partial() / "owner"); }

std::optional<std::uint64_t> OutputFiles::bytes_to_close() const noexcept try {
  if (!results::cases_are_here(partial())) return std::nullopt;
  return results::merged_bytes(partial());
} catch (...) {
  return std::nullopt;
}

void OutputFiles::look_anew() const noexcept try {
  const fs::path scratch =
      fs::path(config_.out).parent_path() / fmt::format(".assay-{}-{}", host_name(), ::getpid());
  const int fd = ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  ::close(fd);
  ::unlink(scratch.c_str());
} catch (...) {  // no memory: what was seen stands
}

void OutputFiles::remember_owner() { owner_before_ = results::read_owner(partial()); }

fs::path OutputFiles::free_name(std::size_t number) const {
  std::error_code none;
  for (;; ++number) {
    fs::path path = fs::path(config_.out).replace_extension().string() + fmt::format(".launch{}.h5", number);
    if (!fs::exists(path, none) && !fs::exists(results::partial_of(path), none)) return path;
  }
}

}  // namespace assay
