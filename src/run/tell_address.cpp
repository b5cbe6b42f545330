// SPDX-License-Identifier: Apache-2.0
#include "run/tell_address.hpp"

namespace assay {

void tell_address(Communicator& launch, supervisor::WorkerLink& link, const std::string& folder) {
  const std::string address = launch.rank() == 0 ? link.collector_address() : "";
  launch.barrier();  // the file is written before rank 0 has its address
  // The key is not shown to whoever reads the traffic of MPI where that can be spared.
  if (launch.min(link.finds_collector(folder) ? 1 : 0) > 0) return;
  link.connect(launch.broadcast_text(address, 0));
}

}  // namespace assay
