// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "suite/suite.hpp"
#include "suites/storage/site.hpp"

namespace assay {

/// Files in the directories that --storage.paths names: rates that are not a cache's, and every word checked.
class StorageSuite final : public Suite {
 public:
  std::string_view name() const noexcept override { return "storage"; }
  std::string_view summary() const noexcept override {
    return "files in the directories of --storage.paths: bandwidth, every word verified";
  }
  std::vector<OptionSpec> options() const override;
  std::vector<results::MetricSpec> metrics() const override;
  std::vector<std::string> checkers() const override { return {"storage"}; }
  FaultPoints fault_points() const override;
  std::map<std::string, std::string> lacks(const Config& config, bool on_gpus) override;
  std::vector<Case> plan(const PlanInput& input) const override;
  void prepare(const std::vector<Case>& cases, const Config& config, Device& device, Communicator& world,
               const std::function<bool()>& go_on) override;
  void run(const Case& c, Context& context) override;
  std::function<void(pid_t)> clean_up(const Config& config) const override;
  std::function<void(const std::string&)> touch() const override;

 private:
  void dispatch(const Case& c, Context& context);
  /// Throws Error(resource) where a directory of the case lies in another file system than when the run
  /// began.
  void expect_same_mounts(const Case& c, const Config& config) const;
  /// Throws Error(resource) where a directory of the case does not answer on this node, or on any of those
  /// that run it together.
  void expect_answers(const Case& c, Context& context);
  void tell_silent(std::size_t path, Context& context);
  void run_answering(const Case& c, Context& context);

  std::vector<std::string> silent_here_;  ///< directories
  std::vector<bool> told_;                ///< by path: this rank has said that it does not answer
  storage::Site site_;
};

}  // namespace assay
