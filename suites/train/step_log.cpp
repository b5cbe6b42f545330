// SPDX-License-Identifier: Apache-2.0
#include "suites/train/step_log.hpp"
#include "suites/train/train_metrics.hpp"

#include <algorithm>
#include <cmath>

namespace assay::train {

std::vector<StepReport> exchange(Communicator& comm, const StepReport& mine) {
  std::vector<StepReport> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(&mine, all.data(), sizeof mine);
  return all;
}

double regret_of(const std::vector<StepReport>& reports) noexcept {
  double loss = 0, oracle = 0, counted = 0;
  for (const StepReport& r : reports) {
    loss += r.loss;
    oracle += r.oracle;
    counted += r.counted;
  }
  return (loss - oracle) / counted;
}

void StepLog::declare(CaseRecord& record) {
  for (const results::MetricSpec& m : metrics().all())
    if (m.operation == "lockstep") record.declare(m);
}

void StepLog::add(const StepReport& mine, double start_s, double regret, double errors) {
  reports_.push_back(mine);
  t_.push_back(start_s);
  regret_.push_back(regret);
  errors_.push_back(errors);
}

double StepLog::recent_regret(int window) const noexcept {
  const int n = std::min(window, steps());
  double sum = 0;
  for (int i = steps() - n; i < steps(); ++i) sum += regret_[static_cast<std::size_t>(i)];
  return sum / std::max(1, n);
}

std::vector<double> StepLog::compute_s() const {
  std::vector<double> all;
  for (const StepReport& r : reports_) all.push_back(r.compute_s());
  return all;
}

CaseRecord::Row& StepLog::write(Context& context, double tokens) const {
  CaseRecord::Row& row = context.record.add_row(context.device_entity);
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    const StepReport& r = reports_[i];
    row.t.push_back(context.since_start(t_[i]));
    row.block.push_back(static_cast<std::int32_t>(3 * i / reports_.size()));
    row.values["throughput"].push_back(tokens / r.step_s());
    row.values["step"].push_back(r.step_s());
    row.values["compute"].push_back(r.compute_s());
    row.values["compute_throughput"].push_back(tokens / r.compute_s());
    row.values["data"].push_back(r.data_s);
    row.values["forward"].push_back(r.forward_s);
    row.values["backward"].push_back(r.backward_s);
    row.values["exposed"].push_back(r.exposed_s);
    row.values["optimizer"].push_back(r.optimizer_s);
    row.values["loss"].push_back(r.loss / r.counted);
    row.values["oracle"].push_back(r.oracle / r.counted);
    row.values["gradient_norm"].push_back(std::sqrt(r.squares));
  }
  if (std::any_of(reports_.begin(), reports_.end(),
                  [](const StepReport& r) { return r.communication_s > 0; }))
    for (const StepReport& r : reports_) {
      row.values["communication"].push_back(r.communication_s);
      row.values["overlap"].push_back(r.overlap());
    }
  row.values["regret"] = regret_;
  row.values["errors"] = errors_;
  return row;
}

}  // namespace assay::train
