// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "supervisor/controller.hpp"

namespace assay::bench {

inline double peak_mb() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return 1.024e-3 * static_cast<double>(used.ru_maxrss);
}

inline double used_mb() {
  std::size_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return 1e-6 * static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// The run's controller, watched: losses, times and memory go to the file `notes`.
class Watched final : public supervisor::Controller {
 public:
  Watched(std::unique_ptr<supervisor::Controller> inner, double launched_s, std::string notes)
      : inner_(std::move(inner)), launched_s_(launched_s), notes_(std::move(notes)) {}

  void start(const std::string& text) override { inner_->start(text); }
  void start_without_plan(const std::vector<std::string>& hosts) override {
    inner_->start_without_plan(hosts);
  }
  bool started() const noexcept override { return inner_->started(); }
  void ready(const std::string& text) override { inner_->ready(text); }
  supervisor::Step next() override {
    const supervisor::Step step = inner_->next();
    begun_s_ = now_s();
    if (first_s_ == 0) first_s_ = begun_s_ - launched_s_, first_cpu_s_ = process_cpu_s();
    return step;
  }
  void take(int rank, const std::string& record) override { inner_->take(rank, record); }
  void store(int index, const std::vector<int>& ranks) override {
    inner_->store(index, ranks);
    stored_s_ = now_s(), stored_cpu_s_ = process_cpu_s();
    gathered_.push_back(stored_s_ - begun_s_);
  }
  std::vector<int> lost(const supervisor::Loss& loss, int index) override {
    std::ofstream(notes_, std::ios::app) << "lost " << loss.rank << " " << loss.kind << "\n";
    return inner_->lost(loss, index);
  }
  void event(const std::string& kind, const std::string& text, int rank) noexcept override {
    inner_->event(kind, text, rank);
  }
  void show_alive() noexcept override { inner_->show_alive(); }
  int finish(const std::string& why, int index) override {
    const double before_mb = peak_mb();
    const int code = inner_->finish(why, index);
    std::sort(gathered_.begin(), gathered_.end());
    std::ofstream(notes_, std::ios::app)
        << fmt::format("times {} {} {} {} {} {} {} {} {}\n", first_s_,
                       gathered_.empty() ? 0.0 : gathered_[gathered_.size() / 2], stored_s_, first_cpu_s_,
                       stored_cpu_s_ - first_cpu_s_, process_cpu_s() - stored_cpu_s_, before_mb, peak_mb(),
                       gathered_.size());
    return code;
  }
  void discard() noexcept override { inner_->discard(); }
  std::string complaint(int rank) const override { return inner_->complaint(rank); }
  bool inside_nodes(int index) const override { return inner_->inside_nodes(index); }
  std::string case_name(int index) const override { return inner_->case_name(index); }
  double phase_deadline_s(unsigned phase, std::optional<double> usual_s) const override {
    return inner_->phase_deadline_s(phase, usual_s);
  }
  double silence_s() const override { return inner_->silence_s(); }
  double standstill_s() const override { return inner_->standstill_s(); }
  std::string directories(int index) const override { return inner_->directories(index); }
  std::string shared_path(int index) const override { return inner_->shared_path(index); }
  double server_standstill_s() const override { return inner_->server_standstill_s(); }
  void stalled(int case_index, const std::string& text) noexcept override {
    inner_->stalled(case_index, text);
  }
  double run_deadline_s() const override { return inner_->run_deadline_s(); }

 private:
  std::unique_ptr<supervisor::Controller> inner_;
  double launched_s_, first_s_ = 0, begun_s_ = 0, stored_s_ = 0, first_cpu_s_ = 0, stored_cpu_s_ = 0;
  std::string notes_;
  std::vector<double> gathered_;
};

}  // namespace assay::bench
