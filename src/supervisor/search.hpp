// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "supervisor/rendezvous.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// Whose supervisor looks for the collector.
struct Place {
  int rank = 0, size = 0;
  int node_ranks = 1;  ///< 1: no relay
  std::string host;
};

/// Finds a way to the collector: the Unix socket of this node, on which its relay listens, or the collector
/// on its own node. The first supervisor that finds nobody there is to relay: it listens there and connects
/// to the collector by TCP. Tries all addresses at once, and repeatedly, since most connections fail in a
/// flood. Keeps the first that authenticates.
class Search {
 public:
  Search(std::string folder, Place place);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// One round; `told` is the address received over MPI, or empty. An open stream when found.
  Stream round(const std::string& told, double now);
  void watch(std::vector<pollfd>& fds) const;
  /// What was found, a relay or the collector.
  bool found_relay() const noexcept { return found_relay_; }
  /// The socket on which this supervisor has to relay, once; -1 without one.
  int take_listener() noexcept;
  /// Begins again after the way was lost; asks a relay only if allowed.
  void restart(double now, bool relay_allowed) noexcept;
  bool knows_address() const noexcept { return address_.has_value(); }
  const std::string& key() const noexcept { return address_->key; }

 private:
  struct Try {
    Stream stream;
    std::string challenge, own;
    double begun_s;
    bool local;
  };
  /// False when this node has a relay, or soon has.
  bool goes_direct(double now);
  void begin(double now);
  bool answered(Try& attempt);

  std::string folder_, job_;
  Place place_;
  std::optional<Address> address_;
  std::vector<Try> tries_;
  bool by_node_, found_relay_ = false, again_ = false;
  int listener_ = -1;
  double next_s_ = 0, next_read_s_ = 0, next_direct_s_ = 0, asked_s_ = 0;
};

}  // namespace assay::supervisor
