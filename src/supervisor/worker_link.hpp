// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "supervisor/heartbeat.hpp"
#include "supervisor/wire.hpp"

namespace assay::supervisor {

/// The worker's end of the connection to its supervisor, and through it to the collector in rank 0's
/// supervisor. Waiting on it sleeps, so the cores stay free.
class WorkerLink {
 public:
  WorkerLink(int fd, Heartbeat& heartbeat) : stream_(fd), heartbeat_(heartbeat) {}

  Heartbeat& heartbeat() noexcept { return heartbeat_; }
  void enter(Phase phase) noexcept { heartbeat_.phase.store(phase, std::memory_order_relaxed); }

  /// Rank 0 only, before anything else: address of the collector, to be sent to the others.
  std::string collector_address();
  /// Whether this rank's supervisor finds the collector by itself: it has read, or can read, the file beside
  /// the output in `folder`. Of rank 0 always true. To be asked after rank 0 has its address.
  bool finds_collector(const std::string& folder) const;
  /// The supervisor connects there if it has not found the collector by itself; empty: it finds it.
  void connect(const std::string& address);

  /// Rank 0 only: sends the description of the job. Throws the collector's Error.
  void start(const std::string& text);
  void ready(const std::string& text);
  /// Waits for the next case to run; no_more_cases at the end of the run, next_segment at the end of a file.
  int next_case();
  /// Text of the case.
  const std::string& step_text() const noexcept { return step_text_; }
  /// At most most_text_bytes.
  void record(int case_index, std::string text);
  /// For a rank that takes no part: sleeps until the run is over.
  void rest();
  /// Last message: this rank will exit with `code`.
  void bye(int code);

 private:
  void send(MessageType type, std::int32_t number, std::string text);
  Message wait(MessageType type);
  Stream stream_;
  Heartbeat& heartbeat_;
  bool is_collectors_ = false;
  std::string step_text_;
};

}  // namespace assay::supervisor
