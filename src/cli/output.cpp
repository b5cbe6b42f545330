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
#include "base/system.hpp"
#include "results/disk.hpp"
#include "verdict/history_index.hpp"

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
  try {
    write(stream);
    stream.flush();
  } catch (const Error&) {
    if (buffer.error() == 0) throw;  // else it stopped because of that
  }
  return buffer.error();
}

[[noreturn]] void throw_write(const std::string& option, const std::string& file, int error) {
  const char* limit = error == EFBIG ? " (limit of file sizes: ulimit -f)" : "";
  throw Error(ErrorKind::io,
              fmt::format("{}: cannot write '{}': {}{}", option, file, std::strerror(error), limit));
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

/// Whether both names lead to one file, which may not exist yet.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) ||
         fs::weakly_canonical(target_of(fs::absolute(a, ignored)), ignored) ==
             fs::weakly_canonical(target_of(fs::absolute(b, ignored)), ignored);
}

/// Whether `file` is `input`, or one of the files that are read where that is a directory.
bool is_read(const fs::path& file, const fs::path& input) {
  std::error_code ignored;
  if (same_file(file, input)) return true;
  const auto partial = [](const fs::path& path) {
    return path.extension() == ".partial" || path.parent_path().extension() == ".partial";
  };
  if (partial(input)) {
    for (const auto& entry : fs::recursive_directory_iterator(input, ignored))
      if (fs::equivalent(file, entry.path(), ignored)) return true;
    return false;
  }
  for (const auto& entry : fs::directory_iterator(input, ignored)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".h5" || path.extension() == ".index" ? fs::equivalent(file, path, ignored)
                                                                  : partial(path) && is_read(file, path))
      return true;
  }
  return false;
}

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
    const std::string target = target_of(file);
    TemporaryFile(option, target).write_and_keep(write);
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
  check_name_length(option, target_of(file).string());
  fs::path folder = target_of(file).parent_path();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw_usage(fmt::format("{}: cannot write '{}': {}", option, file, std::strerror(errno)));
  }
}

void check_outputs(const std::vector<Output>& outputs, const std::vector<std::string>& inputs) {
  for (const auto& [option, file] : outputs) {
    check_writable(option, file);
    if (is_special(file)) continue;  // nothing of it is replaced
    for (const std::string& input : inputs)
      for (const std::string& name : verdict::names_of(input))
        if (is_read(file, name)) throw_usage(fmt::format("{}: '{}' is a file that is read", option, file));
  }
  check_distinct(outputs);
}

void check_distinct(const std::vector<Output>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (!is_special(outputs[i].file) && same_file(outputs[i].file, outputs[before].file))
        throw_usage(fmt::format("{}: '{}' is already the file of {}", outputs[i].option, outputs[i].file,
                                outputs[before].option));
}

void Attempts::operator()(const std::function<void()>& step) {
  try {
    step();
  } catch (const Error& e) {
    if (!first_) first_ = e;
  }
}

void Attempts::finish() const {
  if (first_) throw Error(*first_);
}

int Attempts::worse(int code) const {
  return first_ ? worse_code(code, static_cast<int>(first_->exit_code())) : code;
}

ExitCode Attempts::code(int code) const {
  if (first_) print_error(first_->what());
  return static_cast<ExitCode>(worse(code));
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
  results::check_replaceable(file, force);
  check_writable(option, file);
}

}  // namespace assay::cli
