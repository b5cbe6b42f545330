// SPDX-License-Identifier: Apache-2.0
// A cuFile that moves between files and emulated GPUs. EMULATED_CUFILE says what it does:
//   direct (default)  takes files without compatibility mode, counts in the file ASSAY_NVIDIA_FS_STATS
//   compat            takes files in compatibility mode only
//   late              the same, and says so when it first moves something
//   forced            a setting of the machine makes all go through host memory; nothing is refused
//   pretends          goes through host memory without a word: nothing is counted
//   idle              says that it read, and did not
//   broken            fails to read, with an error of its own, after the first blocks
// A wrong order of calls ends the program.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "device_memory.hpp"

namespace {

struct Status {
  int error = 0, cuda_error = 0;
};
struct Description {
  int type;
  union {
    int fd;
    void* other;
  } file;
  const void* operations;
};

struct DriverProperties {
  unsigned major, minor;
  std::size_t poll_threshold, most_direct;
  unsigned status_flags, control_flags, others[6];
};

constexpr int driver_not_initialized = 5001, internal_error = 5030;
std::atomic<int> opened{0}, handles{0}, memories{0};

/// A thread that moves something has set its device.
bool is_of_this_device(const void* memory) {
  int device = -1;
  return cudaGetDevice(&device) == cudaSuccess && emulation::device_of(memory) == device;
}

std::string mode() {
  const char* said = std::getenv("EMULATED_CUFILE");
  return said != nullptr ? said : "direct";
}
bool compat_allowed() {
  const char* said = std::getenv("CUFILE_ALLOW_COMPAT_MODE");
  return said == nullptr || std::strcmp(said, "true") == 0;
}

/// The counters of a node are those of all its processes.
void count(bool write, std::size_t bytes) {
  const char* name = std::getenv("ASSAY_NVIDIA_FS_STATS");
  if (name == nullptr) return;
  const int fd = open(name, O_RDWR | O_CREAT, 0600);
  if (fd < 0) return;
  flock(fd, LOCK_EX);
  char text[4096] = {};
  const ssize_t length = pread(fd, text, sizeof text - 1, 0);
  unsigned long long read_bytes = 0, written_bytes = 0;
  if (const char* sum = length > 0 ? std::strstr(text, "bytes ") : nullptr; sum != nullptr)
    std::sscanf(sum, "bytes %llu %llu", &read_bytes, &written_bytes);
  (write ? written_bytes : read_bytes) += bytes;
  const int size =
      std::snprintf(text, sizeof text,
                    "GDS Version: 1.16\nIO stats: Enabled, peer IO stats: Disabled\n"
                    "Reads                           : n=1 ok=1 err=0 readMiB=%020llu io_state_err=0\n"
                    "Reads                           : Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n"
                    "Writes                          : n=1 ok=1 err=0 writeMiB=%020llu io_state_err=0\nbytes "
                    "%020llu %020llu\n",
                    read_bytes >> 20, written_bytes >> 20, read_bytes, written_bytes);
  // Of equal length whatever the numbers: readers never see a part.
  if (pwrite(fd, text, static_cast<std::size_t>(size), 0) != size) std::abort();
  close(fd);
}

}  // namespace

extern "C" {

Status cuFileDriverOpen() {
  if (mode() == "compat" && !compat_allowed()) return {driver_not_initialized, 0};
  ++opened;
  return {};
}
Status cuFileDriverClose() {
  if (handles != 0 || memories != 0 || --opened < 0) std::abort();
  return {};
}
Status cuFileDriverGetProperties(DriverProperties* properties) {
  *properties = {};
  properties->control_flags = compat_allowed() || mode() == "forced" ? 2 : 0;
  return {};
}
Status cuFileHandleRegister(void** handle, Description* description) {
  if (opened == 0 || description->type != 1) return {driver_not_initialized, 0};
  *handle = new int(description->file.fd);
  ++handles;
  return {};
}
void cuFileHandleDeregister(void* handle) {
  if (fcntl(*static_cast<int*>(handle), F_GETFD) < 0) std::abort();
  delete static_cast<int*>(handle);
  --handles;
}
Status cuFileBufRegister(const void* base, std::size_t /*bytes*/, int /*flags*/) {
  if (opened == 0 || !is_of_this_device(base)) std::abort();
  ++memories;
  return {};
}
Status cuFileBufDeregister(const void* /*base*/) {
  --memories;
  return {};
}

ssize_t cuFileRead(void* handle, void* base, std::size_t bytes, off_t at, off_t from) {
  if (!is_of_this_device(base)) std::abort();
  if (mode() == "late" && !compat_allowed()) return -internal_error;
  if (mode() == "broken") {
    static std::atomic<int> reads{0};  // on a busy machine a file may be read at its begin only
    if (at > 0 || ++reads > 2) return -internal_error;
  }
  if (mode() == "idle") return static_cast<ssize_t>(bytes);
  const ssize_t moved = pread(*static_cast<int*>(handle), static_cast<char*>(base) + from, bytes, at);
  if (moved > 0 && mode() == "direct") count(false, static_cast<std::size_t>(moved));
  return moved;
}
ssize_t cuFileWrite(void* handle, const void* base, std::size_t bytes, off_t at, off_t from) {
  if (!is_of_this_device(base)) std::abort();
  const ssize_t moved = pwrite(*static_cast<int*>(handle), static_cast<const char*>(base) + from, bytes, at);
  if (moved > 0 && mode() == "direct") count(true, static_cast<std::size_t>(moved));
  return moved;
}
}
