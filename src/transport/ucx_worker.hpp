// SPDX-License-Identifier: Apache-2.0
// One UCP context with its worker, and what is asked of an endpoint. Internal to the UCX transport.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "base/error.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay::ucx {

/// "UCX: CALL: the library's reason".
std::string what(ucs_status_t status, const std::string& call);
/// Throws Error(mpi) unless `status` is UCS_OK.
inline void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) [[unlikely]]
    throw Error(ErrorKind::mpi, what(status, call));
}

/// What carries an endpoint's messages; empty where UCX does not say.
std::string endpoint_path(ucp_ep_h endpoint);

/// Context and worker of one process.
class Worker {
 public:
  /// Throws Error(mpi).
  explicit Worker(const UcxCommunicator::Settings& settings);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  ucp_worker_h get() const noexcept { return worker_; }
  ucp_context_h context() const noexcept { return context_; }
  std::string address() const;

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
};

}  // namespace assay::ucx
