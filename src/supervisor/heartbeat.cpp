// SPDX-License-Identifier: Apache-2.0
#include "supervisor/heartbeat.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/error.hpp"

namespace assay::supervisor {

const char* to_string(Phase phase) noexcept {
  switch (phase) {
    case Phase::launch: return "start of the program";
    case Phase::mpi_init: return "MPI_Init";
    case Phase::discovery: return "discovery of the machine";
    case Phase::memory: return "preparation of memory";
    case Phase::suites: return "preparation of the suites";
    case Phase::waiting: return "waiting for the next case";
    case Phase::running: return "a case";
    case Phase::ending: return "the end of the program";
  }
  return "?";
}

const char* to_string(Call call) noexcept {
  switch (call) {
    case Call::none: return "no call";
    case Call::send: return "send";
    case Call::receive: return "receive";
    case Call::wait: return "wait for transfers";
    case Call::barrier: return "barrier";
    case Call::all_reduce: return "all-reduce";
    case Call::reduce_scatter: return "reduce-scatter";
    case Call::all_gather: return "all-gather";
    case Call::all_to_all: return "all-to-all";
    case Call::broadcast: return "broadcast";
    case Call::split: return "split";
    case Call::set_up: return "set-up of a communicator";
    case Call::texts: return "exchange of texts";
    case Call::files: return "input/output";
  }
  return "?";
}

Snapshot read(const Heartbeat& heartbeat) noexcept {
  Snapshot s;
  s.phase = heartbeat.phase.load(std::memory_order_relaxed);
  s.case_index = heartbeat.case_index.load(std::memory_order_relaxed);
  s.iteration = heartbeat.iteration.load(std::memory_order_relaxed);
  s.calls = heartbeat.calls.load(std::memory_order_relaxed);
  s.call = heartbeat.call.load(std::memory_order_relaxed);
  s.peer = heartbeat.peer.load(std::memory_order_relaxed);
  return s;
}

bool moved(const Snapshot& a, const Snapshot& b) noexcept {
  return a.phase != b.phase || a.case_index != b.case_index || a.iteration != b.iteration ||
         a.calls != b.calls;
}

std::string to_text(const Snapshot& snapshot) {
  static_assert(std::is_trivially_copyable_v<Snapshot>);
  return {reinterpret_cast<const char*>(&snapshot), sizeof snapshot};
}

bool from_text(const std::string& text, Snapshot& out) noexcept {
  if (text.size() != sizeof out) return false;
  std::memcpy(&out, text.data(), sizeof out);
  return out.phase <= Phase::ending && out.call <= Call::files;
}

SharedHeartbeat::SharedHeartbeat() {
  void* page = mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw Error(ErrorKind::resource, "no memory for a page shared with the supervisor");
  heartbeat_ = new (page) Heartbeat;
}

SharedHeartbeat::~SharedHeartbeat() { munmap(heartbeat_, sizeof(Heartbeat)); }

}  // namespace assay::supervisor
