// SPDX-License-Identifier: Apache-2.0
// A file that is opened before it is read: a process that may open nothing any more can still read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace assay {

/// A regular file, open for reading. What hinders opening it is said when it is used. Copies share the
/// descriptor.
class InputFile {
 public:
  /// Never waits, whatever is behind the name.
  InputFile(const std::filesystem::path& path);  // NOLINT(google-explicit-constructor): a path names a file

  const std::filesystem::path& path() const noexcept { return path_; }
  /// False when nothing has this name.
  bool exists() const noexcept;

  // What follows throws Error(usage) "cannot read PATH: ..." when it could not be opened, Error(data) "PATH
  // is not a file".
  int descriptor() const;
  std::uint64_t bytes() const;  ///< when it was opened
  /// Reads `bytes` at `offset`, fewer only at the end of the file. Throws Error(data) when the system cannot.
  std::size_t read(std::uint64_t offset, void* to, std::size_t bytes) const;
  std::string text() const;

 private:
  void require() const;

  std::filesystem::path path_;
  std::shared_ptr<const int> descriptor_;
  int error_ = 0;
  bool regular_ = false;
  std::uint64_t bytes_ = 0;
};

}  // namespace assay
