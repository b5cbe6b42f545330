// SPDX-License-Identifier: Apache-2.0
#include "suites/train/trust.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "suites/train/train_work.hpp"
#include "suites/train/vote.hpp"

namespace assay::train {

std::vector<std::uint64_t> Trust::gather(const std::vector<std::uint64_t>& mine) const {
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(context_.world.size()));
  context_.world.all_gather(mine.data(), all.data(), mine.size() * sizeof(std::uint64_t));
  return all;
}

void Trust::add_wrong(int step, std::size_t column, const std::vector<std::string>& names,
                      std::uint64_t expected, std::uint64_t seen, std::uint64_t repeated) {
  results::Miscompare record;
  record.entity = context_.device_entity;
  record.index = static_cast<std::uint64_t>(step) * names.size() + column;
  record.expected = expected;
  record.actual = seen;
  record.reread = repeated;
  record.t = context_.since_start(now_s());
  context_.record.miscompare(record);
  context_.record.event("miscompare",
                        fmt::format("{}: the digest of {} at step {} is wrong; {}",
                                    name_of_rank(context_, context_.world.rank()), names[column], step,
                                    repeated == expected ? "transient: right when repeated"
                                                         : "persistent: wrong again when repeated"),
                        context_.device_entity);
}

Outcome Trust::check(int step, const std::vector<std::uint64_t>& all, const std::vector<std::string>& names,
                     bool alone, const std::function<std::vector<std::uint64_t>()>& repeat) {
  const std::size_t columns = names.size();
  const int me = context_.world.rank(), ranks = context_.world.size();
  std::vector<Dissent> dissents = vote(all, columns);
  Outcome outcome;
  if (dissents.empty() && !(alone && ranks == 1)) return outcome;
  const std::vector<std::uint64_t> again = gather(repeat());
  outcome.lasting = !vote(again, columns).empty();
  if (ranks == 1)
    for (std::size_t column = 0; column < columns; ++column)
      if (all[column] != again[column]) dissents.push_back({column, 0, all[column], again[column], false});
  bool unsettled = false;
  for (const Dissent& d : dissents) {
    const std::uint64_t repeated = again[static_cast<std::size_t>(d.rank) * columns + d.column];
    // Without a majority the rank that cannot repeat its result was wrong; if all can, the wrong one is
    // unknown.
    if (d.tied && repeated == d.seen) continue;
    if (d.rank != me) continue;
    ++outcome.mine;
    add_wrong(step, d.column, names, d.tied ? repeated : d.expected, d.seen, repeated);
  }
  for (const Dissent& d : dissents) {
    if (!d.tied) continue;
    bool changed = false;
    for (int r = 0; r < ranks; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * columns + d.column;
      changed = changed || all[at] != again[at];
    }
    unsettled = unsettled || !changed;
  }
  if (unsettled)
    context_.record.set_state(results::CaseState::fail,
                              fmt::format("ranks differ at step {}, without a majority, and again when "
                                          "repeated: one of them computes wrongly",
                                          step));
  return outcome;
}

}  // namespace assay::train
