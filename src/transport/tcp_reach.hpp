// SPDX-License-Identifier: Apache-2.0
// Whether TCP gets through from one network interface to those of other ranks: where packets are lost, UCX
// connects in a call that blocks for minutes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace assay {

class TcpReach {
 public:
  /// Listens on the first IPv4 address of `interface`.
  explicit TcpReach(const std::string& interface);
  ~TcpReach();
  TcpReach(const TcpReach&) = delete;
  TcpReach& operator=(const TcpReach&) = delete;

  /// "10.0.0.7:40123"; empty where it has no such address, of which nothing is known then.
  const std::string& address() const noexcept { return address_; }

  /// Indices of those `addresses` of other ranks to which no connection comes about within `seconds`. Those
  /// that are empty are not tried.
  std::vector<std::size_t> silent(std::span<const std::string> addresses, double seconds) const;

 private:
  int listener_ = -1;
  std::string address_;
};

}  // namespace assay
