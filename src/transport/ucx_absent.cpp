// SPDX-License-Identifier: Apache-2.0
// What stands for the UCX transport where this was built without UCX.
#include "base/error.hpp"
#include "transport/ucx_communicator.hpp"

namespace assay {

std::string UcxCommunicator::version() { return {}; }

std::unique_ptr<UcxCommunicator> UcxCommunicator::make(Communicator&, Communicator&, const Settings&) {
  throw Error(ErrorKind::mpi, "this assay was built without UCX");
}

}  // namespace assay
