// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/delivery.hpp"
#include "supervisor/relay.hpp"
#include "supervisor/search.hpp"

namespace assay::supervisor {

/// A relay sends the reports of its node together, which wait for so long at most, in s: rank 0's supervisor
/// would read from thousands of relays once for each rank.
inline constexpr double reports_wait_s = 0.4;

/// A supervisor's way to the collector: by a TCP connection of its own, over which it relays the messages of
/// its node's other supervisors, or through the one that relays. When that one ends or stops, the first that
/// notices takes its place.
class Route {
 public:
  using Take = std::function<void(const Message&)>;

  Route(const std::string& folder, const Place& place) : place_(place), search_(folder, place) {}

  void watch(std::vector<pollfd>& fds) const;
  /// One look at what is ready; `told` is the address received over MPI, or empty. Passes on what the
  /// collector sends to this rank.
  void serve(const std::string& told, double now, const Take& take);
  /// Arrives even if the connection is lost meanwhile; only a status does not wait for a connection.
  void send(Message message);

  bool knows_address() const noexcept { return search_.knows_address(); }
  bool joined() const noexcept { return joined_; }
  /// Whether the collector was there.
  bool met() const noexcept { return met_; }
  /// It was there, and there is no way to it any more.
  bool lost() const noexcept { return lost_; }
  /// No other supervisor needs this one.
  bool relays_nothing() const noexcept { return relay_ == nullptr || relay_->empty(); }
  std::size_t unsent_bytes() const noexcept { return line_.unsent_bytes(); }
  /// The collector has not taken what was sent: nothing but a status should follow yet.
  bool behind() const noexcept { return delivery_.kept_bytes() > most_kept_bytes; }

 private:
  /// Beyond so many unsent bytes the relay reads no more messages.
  static constexpr std::size_t most_unsent_bytes = std::size_t{4} << 20, most_kept_bytes = 4 * part_bytes;
  bool relay_reads() const noexcept { return line_.open() && line_.unsent_bytes() < most_unsent_bytes; }
  void find(const std::string& told, double now);
  void read(double now, const Take& take);
  void take(const Message& message, const Take& take);
  void queue(Message message);
  void pass_on(const Message& message);
  void pass_on_reports();
  void broke(double now);
  void lose();

  Place place_;
  Search search_;
  Delivery delivery_;
  Stream line_;
  std::vector<Stream> left_;  ///< relays that did not answer: closed when there is another way
  std::unique_ptr<Relay> relay_;
  std::vector<Message> reports_;  ///< of this node, the last status of each rank: to be sent together
  bool by_relay_ = false, joined_ = false, met_ = false, lost_ = false;
  int attempt_ = 0;
  double heard_at_s_ = 0, served_at_s_ = 0, adrift_at_s_ = 0, reports_since_s_ = 0;
};

}  // namespace assay::supervisor
