// SPDX-License-Identifier: Apache-2.0
#include "nccl_segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

namespace emulation {

Segment::Segment(const std::string& name) : name_(name) {
  const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) throw std::runtime_error("emulated NCCL: shm_open");
  void* p = MAP_FAILED;
  if (ftruncate(fd, sizeof(Rendezvous)) == 0)
    p = mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) throw std::runtime_error("emulated NCCL: mmap");
  meeting_ = static_cast<Rendezvous*>(p);
}

Segment::~Segment() {
  if (meeting_ != nullptr) munmap(meeting_, sizeof(Rendezvous));
}

void Segment::unlink() noexcept { shm_unlink(name_.c_str()); }

NcclFault nccl_fault(int rank, std::size_t bytes) {
  static std::string text;
  static std::uint64_t seen = 0;
  const char* now = std::getenv("ASSAY_EMULATED_NCCL");
  if (text != (now == nullptr ? "" : now)) {
    text = now == nullptr ? "" : now;
    seen = 0;
  }
  if (text.empty()) return {};
  std::istringstream parts(text);
  std::string part, kind;
  std::getline(parts, kind, ':');
  std::map<std::string, double> values{{"rank", -1}, {"nth", 1}, {"bytes", 0}, {"element", 0}, {"ms", 10}};
  while (std::getline(parts, part, ':'))
    if (const auto equals = part.find('='); equals != std::string::npos)
      values[part.substr(0, equals)] = std::atof(part.c_str() + equals + 1);
  if (rank != static_cast<int>(values["rank"]) || static_cast<double>(bytes) < values["bytes"]) return {};
  const bool here = static_cast<double>(++seen) == values["nth"],
             later = static_cast<double>(seen) > values["nth"];
  NcclFault fault;
  fault.ms = values["ms"];
  fault.element = static_cast<std::size_t>(values["element"]);
  if (kind == "corrupt" && here) fault.kind = NcclFault::corrupt;
  if (kind == "hang" && here) fault.kind = NcclFault::hang;
  if (kind == "slow" && (here || later)) fault.kind = NcclFault::slow;
  return fault;
}

}  // namespace emulation
