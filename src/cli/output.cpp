// SPDX-License-Identifier: Apache-2.0
#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <streambuf>

#include "base/shell.hpp"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;

/// A stream on a file descriptor that remembers why a write failed, which std::ofstream does not.
class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int descriptor) : descriptor_(descriptor) {
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  int error() const noexcept { return error_; }

 protected:
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }

  int sync() override {
    const char* data = pbase();
    while (error_ == 0 && data != pptr()) {
      const ssize_t written = ::write(descriptor_, data, static_cast<std::size_t>(pptr() - data));
      if (written > 0)
        data += written;
      else if (written == 0)
        error_ = EIO;
      else if (errno != EINTR)
        error_ = errno;
    }
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }

 private:
  int descriptor_;
  int error_ = 0;
  std::array<char, 1U << 16U> buffer_{};
};

/// Runs `write` on the descriptor and returns the errno of the first write that failed, 0 if none did.
int write_to(int descriptor, const std::function<void(std::ostream&)>& write) {
  DescriptorBuffer buffer(descriptor);
  std::ostream stream(&buffer);
  write(stream);
  stream.flush();
  return buffer.error();
}

[[noreturn]] void throw_write(const std::string& option, const std::string& file, int error) {
  throw Error(ErrorKind::io, fmt::format("{}: cannot write '{}': {}", option, file, std::strerror(error)));
}

/// A file that exists under a name of its own until it is renamed; removed if it never is.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& option, const std::string& file)
      : option_(option), file_(file), name_(fmt::format("{}.tmp{}", file, getpid())) {
    descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw_write(option_, file_, errno);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!kept_) unlink(name_.c_str());
  }

  void write_and_keep(const std::function<void(std::ostream&)>& write) {
    if (const int error = write_to(descriptor_, write); error != 0) throw_write(option_, file_, error);
    if (fsync(descriptor_) != 0) throw_write(option_, file_, errno);
    if (rename(name_.c_str(), file_.c_str()) != 0) throw_write(option_, file_, errno);
    kept_ = true;
  }

 private:
  const std::string& option_;
  const std::string& file_;
  std::string name_;
  int descriptor_ = -1;
  bool kept_ = false;
};

bool is_special(const std::string& file) {
  struct stat status {};
  return stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

void print_with(const std::function<void(std::ostream&)>& write) {
  const int error = write_to(STDOUT_FILENO, write);
  if (error != 0 && error != EPIPE) {
    throw Error(ErrorKind::io, fmt::format("standard output: {}", std::strerror(error)));
  }
}

void print(const std::string& text) {
  print_with([&](std::ostream& out) { out << text; });
}

void print_error(const std::string& message) {
  std::string line = "assay: " + message;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  line += '\n';
  // One write, so that lines of several ranks do not mix; a failure cannot be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

void write_file(const std::string& option, const std::string& file,
                const std::function<void(std::ostream&)>& write) {
  if (!is_special(file)) {
    TemporaryFile(option, file).write_and_keep(write);
    return;
  }
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) throw_write(option, file, errno);
  const int error = write_to(descriptor, write);
  close(descriptor);
  if (error != 0) throw_write(option, file, error);
}

void check_writable(const std::string& option, const std::string& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw_usage(fmt::format("{}: '{}' is a directory", option, file));
  if (is_special(file)) return;
  fs::path folder = fs::path(file).parent_path();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw_usage(fmt::format("{}: cannot write '{}': {}", option, file, std::strerror(errno)));
  }
}

std::string quoted_command_line(int argc, char** argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    if (i > 0) line += ' ';
    line += shell_word(argv[i]);
  }
  return line;
}

void check_results_output(const std::string& option, const std::string& file, bool force) {
  std::error_code ignored;
  if (!force && std::filesystem::exists(file, ignored))
    throw_usage(file + " exists: choose another name, or overwrite it with --force");
  check_writable(option, file);
}

}  // namespace assay::cli
