// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "supervisor/rendezvous.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// Finds the collector: tries all its addresses at once, and repeatedly, since most connections fail in a
/// flood. Keeps the first that authenticates.
class Search {
 public:
  Search(std::string folder, int rank, int size);

  /// One round; `told` is the address received over MPI, or empty. An open stream when found.
  Stream round(const std::string& told, double now);
  void watch(std::vector<pollfd>& fds) const;

 private:
  struct Try {
    Stream stream;
    std::string challenge, own;
    double begun_s;
  };
  void begin(const Address& address, double now);
  bool answered(Try& attempt);

  std::string folder_, job_, key_;
  int rank_, size_;
  std::vector<Try> tries_;
  double next_s_ = 0;
};

}  // namespace assay::supervisor
