// SPDX-License-Identifier: Apache-2.0
#include "suites/storage/cufile.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "base/shared_object.hpp"
#include "suites/storage/folder.hpp"

namespace assay::storage {
namespace {

// Types and values of cuFile's interface as its reference describes them (versions 1.0 to 1.16).
struct Status {
  int error = 0, cuda_error = 0;
  bool good() const { return error == 0; }
};
struct Description {
  int type = 1;  ///< a file descriptor of the system
  union {
    int fd;
    void* other;
  } file = {};
  const void* operations = nullptr;
};
using Handle = void*;
struct DriverProperties {
  unsigned major = 0, minor = 0;
  std::size_t poll_threshold = 0, most_direct = 0;
  unsigned status_flags = 0, control_flags = 0;
  unsigned others[64] = {};  ///< fewer in all versions so far
};
constexpr int allow_compat = 1, force_compat = 2;  ///< of the parameters that are true or false
constexpr unsigned compat_allowed = 1u << 1;       ///< of the control flags
constexpr std::size_t probe_bytes = 4096;

struct CuFile {
  SharedObject object{"ASSAY_CUFILE_LIBRARY",
                      {"libcufile.so.0", "libcufile.so", "/usr/local/cuda/lib64/libcufile.so.0"},
                      "cuFileDriverOpen"};
  Status (*open)() = nullptr;
  Status (*close)() = nullptr;
  Status (*properties)(DriverProperties*) = nullptr;
  Status (*set_flag)(int, bool) = nullptr;  ///< since 1.14; null before
  Status (*add_file)(Handle*, Description*) = nullptr;
  void (*drop_file)(Handle) = nullptr;
  Status (*add_memory)(const void*, std::size_t, int) = nullptr;
  Status (*drop_memory)(const void*) = nullptr;
  ssize_t (*read)(Handle, void*, std::size_t, off_t, off_t) = nullptr;
  ssize_t (*write)(Handle, const void*, std::size_t, off_t, off_t) = nullptr;

  CuFile() {
    object.load(open, "cuFileDriverOpen");
    object.load(
        close, object.find("cuFileDriverClose_v2") != nullptr ? "cuFileDriverClose_v2" : "cuFileDriverClose");
    object.load(properties, "cuFileDriverGetProperties");
    if (object.find("cuFileSetParameterBool") != nullptr) object.load(set_flag, "cuFileSetParameterBool");
    object.load(add_file, "cuFileHandleRegister");
    object.load(drop_file, "cuFileHandleDeregister");
    object.load(add_memory, "cuFileBufRegister");
    object.load(drop_memory, "cuFileBufDeregister");
    object.load(read, "cuFileRead");
    object.load(write, "cuFileWrite");
  }
};

const CuFile& cufile() {
  static const CuFile one;
  return one;
}

/// A session of the driver in which one file is open.
class CuFileSession {
 public:
  /// Throws Error(resource) where cuFile does not start or does not take the file. The library looks at the
  /// mode when the driver opens.
  CuFileSession(int fd, bool compat) : fd_(::fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
    ::setenv("CUFILE_ALLOW_COMPAT_MODE", compat ? "true" : "false", 1);
    ::setenv("CUFILE_FORCE_COMPAT_MODE", "false", 1);
    ::setenv("CUFILE_LOGFILE_PATH", "/dev/null", 0);  // else a file in the working directory
    if (cufile().set_flag != nullptr) {
      cufile().set_flag(force_compat, false);
      cufile().set_flag(allow_compat, compat);
    }
    require(cufile().open(), "driver");
    Description description;
    description.file.fd = fd_.get();
    const Status status = cufile().add_file(&handle_, &description);
    if (!status.good()) cufile().close();
    require(status, "file");
    DriverProperties now;
    allows_compat_ = !cufile().properties(&now).good() || (now.control_flags & compat_allowed) != 0;
  }
  ~CuFileSession() {
    cufile().drop_file(handle_);
    cufile().close();
  }
  CuFileSession(const CuFileSession&) = delete;
  CuFileSession& operator=(const CuFileSession&) = delete;

  Handle handle() const noexcept { return handle_; }
  bool allows_compat() const noexcept { return allows_compat_; }

 private:
  static void require(Status status, const char* what) {
    if (!status.good())
      throw Error(ErrorKind::resource,
                  fmt::format("cuFile, {}: error {} (CUDA {})", what, status.error, status.cuda_error));
  }

  Descriptor fd_;  ///< its own: it is open as long as the handle
  Handle handle_ = nullptr;
  bool allows_compat_ = true;
};

bool on_block_device(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && major(info.st_dev) != 0;
}

class CuFileEngine final : public Engine {
 public:
  CuFileEngine(Device& device, int depth, int fd, GpuPath& path) : Engine(depth), device_(device), fd_(fd) {
    path = open(fd);
    ThreadWork work;
    work.move = [this](bool write, const Request& r) { return move(write, r); };
    work.begin = [this] { device_.use_in_thread(); };
    threads_ = make_thread_engine(depth, std::move(work));
  }
  ~CuFileEngine() override {
    threads_.reset();
    drop_memory();
  }
  CuFileEngine(const CuFileEngine&) = delete;
  CuFileEngine& operator=(const CuFileEngine&) = delete;

  std::string name() const override { return registered_ ? "cufile" : "cufile, memory not registered"; }

  void use_memory(std::span<std::byte> memory) override {
    if (memory.size() > device_.arena().size())
      throw Error(ErrorKind::internal, "storage: the arena of the GPU is smaller than a chunk");
    memory_ = memory;
    drop_memory();
    // Without it, cuFile copies through a buffer of its own on the GPU.
    registered_ = cufile().add_memory(device_.arena().data(), memory.size(), 0).good();
  }

  void fill_memory(std::span<const Request> requests) override {
    for (const Request& r : requests)
      device_.copy_to_device(device_.arena().data() + place(r), r.data, r.bytes);
  }
  void fetch_memory(std::span<const Request> requests) override {
    for (const Request& r : requests)
      device_.copy_to_host(r.data, device_.arena().data() + place(r), r.bytes);
  }

  void run(bool write, std::span<Request> requests) override {
    threads_->run(write, requests);
    if (const std::int64_t code = own_error_.exchange(0); code != 0)
      throw Error(ErrorKind::resource,
                  fmt::format("cuFile: error {} of a {}", code, write ? "write" : "read"));
  }

 private:
  /// With compatibility mode forbidden where cuFile then takes the file, and moves: some paths show only then
  /// that they are missing.
  GpuPath open(int fd) {
    try {
      session_.emplace(fd, false);
      probe();
      if (session_->allows_compat()) return GpuPath::compat;  // a driver that was open before, or a setting
      const bool plain = (::fcntl(fd, F_GETFL) & O_DIRECT) != 0 && on_block_device(fd);
      return plain ? GpuPath::direct : GpuPath::unproven;
    } catch (const Error&) {
      session_.reset();
    }
    session_.emplace(fd, true);
    probe();
    return GpuPath::compat;
  }

  void probe() {
    std::byte* base = device_.arena().data();
    ssize_t moved = cufile().write(session_->handle(), base, probe_bytes, 0, 0);
    if (moved == probe_bytes) moved = cufile().read(session_->handle(), base, probe_bytes, 0, 0);
    if (moved != probe_bytes)
      throw Error(ErrorKind::resource, fmt::format("cuFile: a first block: {}", moved));
  }

  std::size_t place(const Request& r) const { return static_cast<std::size_t>(r.data - memory_.data()); }

  std::int64_t move(bool write, const Request& r) {
    if (r.fd != fd_) return r.fd < 0 ? r.fd : -EBADF;
    std::byte* base = device_.arena().data();
    const auto at = static_cast<off_t>(r.offset), from = static_cast<off_t>(place(r));
    errno = 0;
    const ssize_t moved = write ? cufile().write(session_->handle(), base, r.bytes, at, from)
                                : cufile().read(session_->handle(), base, r.bytes, at, from);
    if (moved >= 0) return moved;
    if (moved == -1 && errno > 0) return -errno;
    own_error_ = -moved;  // of cuFile, which says nothing of the storage
    return -EIO;
  }

  void drop_memory() {
    if (registered_) cufile().drop_memory(device_.arena().data());
    registered_ = false;
  }

  Device& device_;
  int fd_;
  std::optional<CuFileSession> session_;
  std::span<std::byte> memory_;
  bool registered_ = false;
  std::atomic<std::int64_t> own_error_{0};
  std::unique_ptr<Engine> threads_;
};

/// The number after `name=`; nothing where it is missing.
std::optional<double> value_of(const std::string& line, const std::string& name) {
  const std::size_t at = line.find(" " + name + "=");
  if (at == std::string::npos) return {};
  return std::strtod(line.c_str() + at + name.size() + 2, nullptr);
}

}  // namespace

std::string why_no_cufile() {
  try {
    cufile();
    return "";
  } catch (const Error& e) {
    return std::string("no cuFile: ") + e.what();
  }
}

std::optional<NvidiaFsBytes> parse_nvidia_fs(const std::string& stats) {
  constexpr double mib = 1 << 20;
  std::istringstream lines(stats);
  std::optional<double> read, written;
  bool counts = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("IO stats:")) counts = line.starts_with("IO stats: Enabled");
    if (line.starts_with("Reads") && !read) read = value_of(line, "readMiB");
    if (line.starts_with("Writes") && !written) written = value_of(line, "writeMiB");
  }
  if (!counts || !read || !written) return {};
  return NvidiaFsBytes{*read * mib, *written * mib};
}

std::optional<NvidiaFsBytes> nvidia_fs_now() {
  const char* file = std::getenv("ASSAY_NVIDIA_FS_STATS");
  std::ifstream in(file != nullptr ? file : "/proc/driver/nvidia-fs/stats");
  std::ostringstream text;
  if (in) text << in.rdbuf();
  return parse_nvidia_fs(text.str());
}

std::unique_ptr<Engine> make_cufile_engine(Device& device, int depth, int fd, GpuPath& path) {
  return std::make_unique<CuFileEngine>(device, depth, fd, path);
}

}  // namespace assay::storage
