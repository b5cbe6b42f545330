// SPDX-License-Identifier: Apache-2.0
// Files that survive a crash: durable writes, a checksum at the end of a file, publishing under the final
// name. Private to src/results.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"

namespace assay::results {

using Path = std::filesystem::path;

/// An error of the operating system: `number` is its errno.
class DiskError : public Error {
 public:
  DiskError(ErrorKind kind, const std::string& message, int number) : Error(kind, message), number_(number) {}
  int number() const noexcept { return number_; }

 private:
  int number_;
};

/// Throws DiskError(io): "cannot <what> <path>: <errno in words>".
[[noreturn]] void fail_io(const std::string& what, const Path& path);

std::string read_file(const Path& path);  ///< the whole file; throws Error(data) if it cannot be read

/// Writes `bytes` to a temporary name in the same directory, fsyncs, renames to `path` and fsyncs the
/// directory. Durable and complete, or not there at all. Throws Error(io).
void write_durable(const Path& path, const std::string& bytes);
/// The same of a file that `write` makes under the name it is given.
void make_durable(const Path& path, const std::function<void(const Path& temporary)>& write);
void make_directory(const Path& path);  ///< throws Error(io)
/// One write at the end of the file, so that lines of two writers cannot mix.
/// Throws DiskError(io).
void append(const Path& path, const std::string& bytes);
/// Removes a last line without a line end, left by a writer that was killed. Throws DiskError(io).
void cut_torn_line(const Path& path);
void sync_file(const Path& path);            ///< fsync; throws DiskError(io)
void sync_directory(const Path& directory);  ///< fsync; throws DiskError(io)

/// Throws Error(io) now rather than in the middle of a merge when `bytes` more cannot be written beside
/// `path`.
void reserve(const Path& path, std::uint64_t bytes);

// A trailer of 32 bytes after the end of the HDF5 content: readers of HDF5 ignore it, tools that change the
// file cut it off. It shows that a file is damaged before HDF5 reads it.
void seal(std::string& image);     ///< appends it to the bytes of a file
void seal_file(const Path& path);  ///< appends it to the file; throws Error(io)

struct CheckedFile {
  std::uint64_t bytes = 0;
  bool sealed = false;  ///< it has a trailer, and fits it
};
/// A regular file of HDF5, complete as far as its superblock tells, and equal to its trailer if it has one.
/// Throws Error(data), or Error(usage) if there is no such file.
CheckedFile check_hdf5(const InputFile& file);

/// What a directory holds, in any order; nothing where there is no such directory. Throws DiskError(io) when
/// not all of it can be listed.
std::vector<Path> entries_of(const Path& directory);

/// Whether something has this name, be it a symbolic link to nothing.
bool is_there(const Path& path);

/// Throws Error(usage) where no results file can be made of that name: it is a directory or a special file
/// (which a rename would replace), or exists and there is no `force`.
void check_replaceable(const Path& file, bool force);

/// Gives the finished file `from` its name. Without `force` an existing `to` is left alone: Error(usage).
void publish(const Path& from, const Path& to, bool force);

struct EventRow;

/// The process that writes a partial directory.
struct Owner {
  std::string run_id, host;
  std::int64_t pid = 0;
  std::uint64_t start = 0;  ///< of the process, in clock ticks since boot: pids are used again
  bool operator==(const Owner&) const = default;
};
Owner this_process(const std::string& run_id);
std::string to_text(const Owner& owner);
std::optional<Owner> read_owner(const Path& partial);  ///< nullopt when there is none that can be read
std::optional<Owner> parse_owner(const std::string& text);
/// Whether the directory still belongs to `owner`, as far as an untrusted file can show.
bool is_owner(const Path& partial, const Owner& owner);
/// True when that process is this one or runs on this host.
bool is_running(const Owner& owner);

/// The same for readers: a process of another host lives if it has touched the directory in the last 60 s, by
/// the clock of this host.
bool seems_to_run(const Path& partial, const Owner& owner);

/// Refuses to touch a directory whose owner lives, or may live where this host cannot see it: that of another
/// host must not have changed for 60 s. Throws Error(usage) naming the owner.
void check_abandoned(const Path& partial, const Owner& owner);

/// Held from the first look at a directory until its owner has changed: other processes wait and then see
/// the new owner. Where the file system has no locks `take_over` alone decides. Throws Error(usage)
/// after 10 s of waiting.
class TakeOverLock {
 public:
  explicit TakeOverLock(const Path& partial);
  ~TakeOverLock();
  TakeOverLock(const TakeOverLock&) = delete;
  TakeOverLock& operator=(const TakeOverLock&) = delete;

 private:
  int fd_ = -1;
};

/// Makes this process the owner of a partial directory that its run left behind: of several that try at once
/// one succeeds. Throws Error(usage) as `check_abandoned`. A former owner that lives after all gets an error
/// from its next write, because the directory of the cases changes its name.
Owner take_over(const Path& partial, const std::string& run_id);

/// Gives up a partial directory in the name of its owner, which is this process or is known to the caller to
/// have ended, wherever it ran: the next run need not wait for 60 s. Nothing happens while another process
/// that owns it is seen to run. Throws Error(usage) when another process takes it over, Error(io).
/// Then adds `event`, if there is one, to what the run said.
void release(const Path& partial, const EventRow* event = nullptr);

/// Where the case files are: `cases`, or `cases-N` after the directory has changed hands. Throws
/// DiskError(io).
Path cases_directory(const Path& partial);
/// Makes it; in `spool`, if there is one, and `cases` is then a link to it. Throws Error(io).
void make_cases(const Path& partial, const Path& spool, const std::string& run_id);
/// Throws Error(usage) when `cases` is a link to a directory that is not on this machine, or that no run has
/// made.
void check_cases(const Path& partial);
/// True when check_cases() throws nothing.
bool cases_are_here(const Path& partial);
/// Removes a directory, `last` in it after all else, so that a removal that was cut short leaves the file
/// that tells whose it is. False where some of it is left. Throws nothing.
bool remove_with_last(const Path& directory, const std::string& last) noexcept;
/// Removes a directory of cases that is in a spool. False where some of it is left. Throws nothing.
bool remove_spooled(const Path& partial) noexcept;

/// Removes a directory that a writer made, and its cases in a spool. Never throws; returns false when
/// something stays.
bool remove_partial(const Path& partial) noexcept;

}  // namespace assay::results
