// SPDX-License-Identifier: Apache-2.0
// Reading files that are not trusted, in a process that can do nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/input_file.hpp"

namespace assay {

/// Where the reading process puts what it found.
class Sink {
 public:
  explicit Sink(int fd);
  void write(const void* data, std::size_t bytes);
  void flush();
  void end();
  void fail(int kind, const std::string& message);

 private:
  void send(const void* data, std::size_t bytes);
  int fd_;
  std::string waiting_;
};

/// The other end. Not trusted: the reader uses no number before the bytes are there.
class Source {
 public:
  Source(int fd, std::uint64_t most_bytes, double patience_s);
  /// Throws the Error that the reading process met, Error(data) when it says too much.
  void read(void* to, std::size_t bytes);
  /// Throws Error(data) unless all has been read.
  void finish();

 private:
  bool next_frame();
  void receive(void* to, std::size_t bytes);
  int fd_;
  std::uint64_t left_;
  double until_s_;
  std::vector<char> frame_;
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// The files that a reading process was given, in the order in which they were named.
using Inputs = std::vector<InputFile>;
using ReadInputs = std::function<void(const Inputs&, Sink&)>;

/// Opens `files` in a child process, runs `read` on them there, and meanwhile `take`, which gets what it
/// writes, in this one. The child has bounded memory and processor time, no descriptor of this process, no
/// other output, and, once the files are open, a filter of system calls where there is one
/// (reading_filter.hpp): it can open nothing else. Errors of `read` are thrown here. Throws Error(data) with
/// one line naming the files when the child crashes, does not end, says too much or asks the system for what
/// reading does not need; Error(resource) when there can be no child. What `take` gets is no more to be
/// trusted than the files were.
void read_confined(const std::vector<std::string>& files, const ReadInputs& read,
                   const std::function<void(Source&)>& take);

/// What protects this machine from the files that it reads, for people.
std::string describe_confinement();

}  // namespace assay
