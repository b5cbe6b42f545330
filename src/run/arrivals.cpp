// SPDX-License-Identifier: Apache-2.0
#include "run/arrivals.hpp"

#include <algorithm>
#include <utility>

#include "run/controller.hpp"

namespace assay {
namespace {

bool same(const CaseRecord::MetricSpec& a, const CaseRecord::MetricSpec& b) {
  return a.name == b.name && a.unit == b.unit && a.better == b.better && a.required == b.required &&
         a.role == b.role && a.per_sample == b.per_sample && a.title == b.title && a.judging == b.judging;
}

}  // namespace

void Arrivals::take(int rank, const std::string& text) {
  CaseReport report = case_report_from(text);
  Arrival arrival{CaseRecord::deserialize(report.record), std::move(report.counters),
                  std::move(report.telemetry), std::move(report.unfired)};
  auto& metrics = arrival.record.metrics_;
  if (metrics_.empty()) metrics_ = metrics;
  arrival.shares_metrics = std::equal(metrics.begin(), metrics.end(), metrics_.begin(), metrics_.end(), same);
  if (arrival.shares_metrics) std::exchange(metrics, {});
  arrived_.insert_or_assign(rank, std::move(arrival));
}

std::string Arrivals::complaint(int rank) const {
  const auto at = arrived_.find(rank);
  return at != arrived_.end() && at->second.record.state_ == results::CaseState::error
             ? at->second.record.reason_
             : std::string();
}

Arrivals::Ended Arrivals::end(const std::vector<int>& ranks, const std::vector<int>& members) {
  Ended ended;
  ended.unfired.resize(members.size());
  bool declared = false;
  for (std::size_t place = 0; place < members.size(); ++place) {
    CaseRecord& record = ended.records.emplace_back();
    const auto at = arrived_.find(members[place]);
    if (at == arrived_.end() || !std::binary_search(ranks.begin(), ranks.end(), members[place])) {
      ended.all = false;
      continue;
    }
    Arrival arrival = std::move(at->second);
    arrived_.erase(at);
    ended.any = true;
    record = std::move(arrival.record);
    if (arrival.shares_metrics && !record.rows_.empty() && !std::exchange(declared, true))
      record.metrics_ = metrics_;  // the first with rows declares them for all
    ended.unfired[place] = std::move(arrival.unfired);
    for (auto [from, to] : {std::pair(&arrival.counters, &ended.news.counters),
                            std::pair(&arrival.telemetry, &ended.news.telemetry)})
      if (!from->empty()) to->push_back(std::move(*from));
  }
  arrived_.clear();
  metrics_.clear();
  return ended;
}

}  // namespace assay
