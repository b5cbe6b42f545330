// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <exception>

#include "base/clock.hpp"
#include "transport/mpi_check.hpp"
#include "transport/mpi_communicator.hpp"
#include "transport/mpi_detail.hpp"

namespace assay {

MpiSession::MpiSession(int* argc, char*** argv, supervisor::Heartbeat* heartbeat) : heartbeat_(heartbeat) {
  const double begin = now_s();
  int provided = MPI_THREAD_SINGLE;
  mpi::check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    throw Error(ErrorKind::mpi,
                "MPI_Init_thread: this MPI allows no threads (MPI_THREAD_FUNNELED is needed)");
  launch_ = mpi::duplicate_world(mpi::count_limit, heartbeat);
  init_s_ = now_s() - begin;
}

MpiSession::~MpiSession() {
  // MPI_Finalize waits for all ranks. While an exception unwinds this rank the others may be anywhere, and
  // waiting for them would turn an error into a hang: the launcher ends them instead.
  if (std::uncaught_exceptions() > 0) return;
  part_.reset();
  launch_.reset();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

bool MpiSession::keep(const std::vector<int>& members) {
  part_.reset();
  if (static_cast<int>(members.size()) == launch_->size()) return true;
  const bool mine = std::binary_search(members.begin(), members.end(), launch_->rank());
  part_ = launch_->split(mine ? 0 : 1, launch_->rank());
  return mine;
}

std::unique_ptr<Communicator> MpiSession::split_node() {
  MPI_Comm part = MPI_COMM_NULL;
  mpi::check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, launch_->rank(), MPI_INFO_NULL, &part),
             "MPI_Comm_split_type");
  return mpi::make_communicator(part, launch_->path(), mpi::count_limit, heartbeat_);
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::abort();
}

std::map<std::string, std::string> mpi_versions(const Communicator* world) {
  std::map<std::string, std::string> versions;
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(library, &length) == MPI_SUCCESS) {
    // "Open MPI v4.1.4, package: ..., ident: ..." or several lines: the first part names it.
    std::string text(library, static_cast<std::size_t>(length));
    text = text.substr(0, text.find_first_of(",\n"));
    const auto v = text.find(" v");
    if (v != std::string::npos) text.erase(v + 1, 1);
    versions["mpi"] = text;
  }
  int major = 0, minor = 0;
  if (MPI_Get_version(&major, &minor) == MPI_SUCCESS)
    versions["mpi.standard"] = std::to_string(major) + "." + std::to_string(minor);
  if (world != nullptr) versions["mpi.path"] = world->path();
  return versions;
}

}  // namespace assay
