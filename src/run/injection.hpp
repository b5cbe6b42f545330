// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "run/injector.hpp"

namespace assay {

/// All that --inject changes in a run: the communicators that the cases use, the rank's Injector. Without
/// faults it hands through what it was given.
class Injection {
 public:
  /// Collective. `run_start_s`: on this rank's clock.
  Injection(const RankEnvironment& given, double run_start_s);

  Injector* injector() const noexcept { return injector_.get(); }
  /// What it was given, with the communicators that make the faults.
  RankEnvironment environment() const;

 private:
  RankEnvironment given_;
  std::unique_ptr<Injector> injector_;
  std::unique_ptr<Communicator> world_, node_, leaders_;
};

}  // namespace assay
