// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "run/injector.hpp"

namespace assay {

/// All that --inject changes in a run: the communicators that the cases use, the rank's Injector. Without
/// faults it hands through what it was given.
class Injection {
 public:
  struct Parts {
    const Config& config;
    const Topology& topology;
    const EntityTable& entities;
    Device& device;
    Communicator& world;
    Communicator& node;
    Communicator* leaders;
    double run_start_s;  ///< on this rank's clock
  };
  /// Collective.
  explicit Injection(const Parts& parts);

  Injector* injector() const noexcept { return injector_.get(); }
  Communicator& world() const noexcept { return world_ ? *world_ : parts_.world; }
  Communicator& node() const noexcept { return node_ ? *node_ : parts_.node; }
  Communicator* leaders() const noexcept { return leaders_ ? leaders_.get() : parts_.leaders; }

 private:
  Parts parts_;
  std::unique_ptr<Injector> injector_;
  std::unique_ptr<Communicator> world_, node_, leaders_;
};

}  // namespace assay
