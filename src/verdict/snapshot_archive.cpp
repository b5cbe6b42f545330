// SPDX-License-Identifier: Apache-2.0
#include "verdict/snapshot_archive.hpp"

#include <cmath>
#include <map>

#include "results/archive.hpp"

namespace assay::verdict {

using results::Of;

template <class V>
void members(Of<RunSource>, V&& v) {
  v(&RunSource::file), v(&RunSource::run_id), v(&RunSource::started), v(&RunSource::hash);
}
template <class V>
void members(Of<Part>, V&& v) {
  v(&Part::kind), v(&Part::id), v(&Part::name), v(&Part::node), v(&Part::far_node), v(&Part::entities);
}
template <class V>
void members(Of<PartRows>, V&& v) {
  v(&PartRows::part), v(&PartRows::stratum);
}
template <class V>
void members(Of<SnapshotSeries>, V&& v) {  // but for its rows, which several share
  using S = SnapshotSeries;
  v(&S::suite), v(&S::name), v(&S::metric), v(&S::unit), v(&S::kind), v(&S::stage), v(&S::case_key),
      v(&S::higher_is_better);
  v(&S::shared), v(&S::by_node), v(&S::fault_threshold), v(&S::samples), v(&S::strata), v(&S::log_rate),
      v(&S::log_clock), v(&S::standard_error), v(&S::n);
}

namespace {

void put(results::Packer& out, const Snapshot& run) {
  out.put(run.source), out.put(run.level), out.put(run.injected), out.put(run.parts), out.put(run.left_out);
  std::map<const PartRows*, std::uint64_t> known;
  std::vector<PartRows> rows;
  for (const auto& s : run.series)
    if (known.try_emplace(s.rows.get(), rows.size()).second) rows.push_back(*s.rows);
  out.put(rows);
  out.put(std::uint64_t{run.series.size()});
  for (const auto& s : run.series) out.put(s), out.put(known.at(s.rows.get()));
}

void require(bool good) {
  if (!good) throw Error(ErrorKind::data, "its data are inconsistent");
}

void check(const Snapshot& run) {
  const auto within = [&](std::int32_t row, std::int32_t least) {
    return row >= least && row < static_cast<std::int32_t>(run.parts.size());
  };
  for (const Part& p : run.parts) require(within(p.node, 0) && within(p.far_node, -1));
  for (const auto& s : run.series) {
    const std::size_t n = s.rows->part.size();
    const auto fits = [&](const auto& column) { return column.empty() || column.size() == n; };
    require(s.rows->stratum.size() == n && s.log_rate.size() == n && fits(s.log_clock) &&
            fits(s.standard_error) && fits(s.n));
    for (std::size_t i = 0; i < n; ++i)
      require(within(s.rows->part[i], 0) && s.rows->stratum[i] >= 0 &&
              static_cast<std::size_t>(s.rows->stratum[i]) < s.strata.size() && std::isfinite(s.log_rate[i]));
  }
}

Snapshot get(results::Unpacker& in) {
  Snapshot run;
  in.get(run.source), in.get(run.level), in.get(run.injected), in.get(run.parts), in.get(run.left_out);
  std::vector<PartRows> rows;
  in.get(rows);
  std::vector<std::shared_ptr<const PartRows>> shared;
  for (PartRows& r : rows) shared.push_back(std::make_shared<const PartRows>(std::move(r)));
  for (auto left = in.number(); left > 0; --left) {
    in.get(run.series.emplace_back());
    const auto row = in.number();
    require(row < shared.size());
    run.series.back().rows = shared[row];
  }
  check(run);
  return run;
}

}  // namespace

std::vector<IndexedRun> runs_read_confined(
    const std::string& file, const std::function<std::vector<IndexedRun>(const InputFile&)>& read) {
  std::vector<IndexedRun> runs;
  read_confined(
      {file},
      [&](const Inputs& inputs, Sink& sink) {
        const auto found = read(inputs.front());
        results::Packer out(sink);
        out.put(std::uint64_t{found.size()});
        for (const auto& run : found)
          out.put(run.file), out.put(run.bytes), out.put(run.changed_ns), put(out, run.run);
      },
      [&](Source& source) {
        results::Unpacker in(source);
        for (auto left = in.number(); left > 0; --left) {
          IndexedRun& run = runs.emplace_back();
          in.get(run.file), in.get(run.bytes), in.get(run.changed_ns);
          run.run = get(in);
        }
      });
  return runs;
}

}  // namespace assay::verdict
