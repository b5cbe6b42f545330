// SPDX-License-Identifier: Apache-2.0
#include "verdict/history_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/history_level.hpp"
#include "verdict/reference_scores.hpp"

namespace assay::verdict::past {
namespace {

using results::not_taken;

std::size_t nodes_in(const Snapshot& run, const std::vector<Score>& scores) {
  std::set<std::int32_t> nodes;
  for (const auto& s : scores) nodes.insert(run.part(s.part).node);
  return nodes.size();
}

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return median(values);
}

/// Takes the runs in which the whole fleet is slow out of what its level is held to be: a loss that lasts is
/// no level to get used to. The rows, which are without drift, then have the level before the loss.
void find_level(Matrix& m) {
  std::vector<double> steady;
  for (std::size_t h = 0; h < m.fleet.size(); ++h) {
    if (std::isnan(m.fleet[h])) continue;
    if (steady.size() >= 2 &&
        median(steady) - m.fleet[h] > fleet_threshold(steady.size(), fleet_sigma(steady))) {
      if (m.since < 0) m.since = static_cast<std::ptrdiff_t>(h);
      continue;
    }
    m.since = -1;
    steady.push_back(m.fleet[h]);
  }
  if (steady.empty()) return;
  m.levels = steady.size();
  m.fleet_sigma = fleet_sigma(steady);
  const double level = median(steady);
  for (auto& row : m.rows)
    for (std::size_t h = 0; h < m.fleet.size(); ++h)
      if (!std::isnan(m.fleet[h])) row[h] += level;
}

/// A fault that was repaired is no past of a part: where it comes back, the part is slow again.
void set_ended_aside(Matrix& m) {
  m.ended.resize(m.rows.size());
  const double noise = noise_of(m);
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    const Past p = past_of(m.rows[i]);
    for (const auto& [begin, end] : ended_losses(p.values, noise)) {
      auto& values = m.ended[i].emplace_back();
      for (std::size_t k = begin; k < end; ++k) {
        values.push_back(p.values[k]);
        m.rows[i][p.runs[k]] = not_taken;
      }
    }
  }
}

}  // namespace

double noise_of(const Matrix& m) {
  if (!m.drift_known) return verdict::noise_of(m.rows, false);
  std::vector<std::vector<double>> rows(m.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t h = 0; h < m.tells.size(); ++h)
      if (m.tells[h]) rows[i].push_back(m.rows[i][h]);
  return verdict::noise_of(rows, true);
}

std::string key_of(const SnapshotSeries& s) { return s.full() + '\n' + s.case_key; }

Matrix matrix_of(const std::vector<Run>& runs, const std::string& key, std::size_t identities) {
  Matrix m;
  m.row_of.assign(identities, -1);
  m.tells.assign(runs.size(), false);
  for (std::size_t h = 0; h < runs.size(); ++h) {
    const auto at = runs[h].series.find(key);
    if (at == runs[h].series.end()) continue;
    ++m.runs;
    const auto scores = scores_of(*runs[h].snapshot, *at->second);
    m.tells[h] = nodes_in(*runs[h].snapshot, scores) >= constants::fleet_min_nodes;
    for (const auto& s : scores) {
      auto& row = m.row_of[static_cast<std::size_t>(runs[h].ids[static_cast<std::size_t>(s.part)])];
      if (row < 0) {
        row = static_cast<std::int32_t>(m.rows.size());
        m.rows.emplace_back(runs.size(), not_taken);
      }
      m.rows[static_cast<std::size_t>(row)][h] = s.log_rate;
    }
  }
  m.fleet.assign(runs.size(), not_taken);
  m.drift_known = 2 * static_cast<std::size_t>(std::ranges::count(m.tells, true)) > m.runs;
  if (!m.drift_known) {
    set_ended_aside(m);
    return m;
  }
  std::vector<double> centres;
  for (const auto& row : m.rows) centres.push_back(median_of(row));
  const double noise = noise_of(m);
  for (std::size_t h = 0; h < runs.size(); ++h) {
    if (!m.tells[h]) continue;
    std::vector<double> off;
    for (std::size_t i = 0; i < m.rows.size(); ++i)
      if (!std::isnan(m.rows[i][h])) off.push_back(m.rows[i][h] - centres[i]);
    if (off.empty()) continue;
    const double drift = drift_of(off, noise);
    m.fleet[h] = drift;
    for (auto& row : m.rows) row[h] -= drift;
  }
  find_level(m);
  set_ended_aside(m);
  return m;
}

Past past_of(const std::vector<double>& row) {
  Past p;
  for (std::size_t h = 0; h < row.size(); ++h) {
    if (std::isnan(row[h])) continue;
    p.values.push_back(row[h]);
    p.runs.push_back(h);
  }
  return p;
}

}  // namespace assay::verdict::past
