// SPDX-License-Identifier: Apache-2.0
#include "suites/train/trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "suites/train/train_work.hpp"

namespace assay::train {

namespace {

/// Of a device that must give the bits of another one with the same.
std::uint64_t kind_of(const Device& device) {
  std::uint64_t hash = hash_text("threads=" + std::to_string(device.threads()));
  for (const auto& [key, value] : device.identity()) hash = hash_text(key + "=" + value + ";", hash);
  return hash;
}

}  // namespace

Trust::Trust(Context& context, Alike alike) : context_(context) {
  if (alike == Alike::all) {
    kinds_.resize(1);
    kinds_[0].resize(static_cast<std::size_t>(context.world.size()));
    std::iota(kinds_[0].begin(), kinds_[0].end(), 0);
    return;
  }
  const auto kinds = gather({kind_of(context.device)});
  std::map<std::uint64_t, std::vector<int>> ranks;
  for (std::size_t r = 0; r < kinds.size(); ++r) ranks[kinds[r]].push_back(static_cast<int>(r));
  for (auto& [kind, members] : ranks) kinds_.push_back(std::move(members));
}

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

std::vector<Dissent> Trust::votes(const std::vector<std::uint64_t>& all, std::size_t columns) const {
  std::vector<Dissent> dissents;
  for (const auto& members : kinds_) {
    std::vector<std::uint64_t> digests;
    for (const int rank : members) {
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * columns);
      digests.insert(digests.end(), from, from + static_cast<std::ptrdiff_t>(columns));
    }
    for (Dissent d : vote(digests, columns)) {
      d.rank = members[static_cast<std::size_t>(d.rank)];
      dissents.push_back(d);
    }
  }
  return dissents;
}

void Trust::add_unsteady(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& again,
                         std::size_t columns, std::vector<Dissent>& dissents) const {
  for (const auto& members : kinds_) {
    if (members.size() > 1) continue;
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t at = static_cast<std::size_t>(members[0]) * columns + column;
      if (all[at] != again[at]) dissents.push_back({column, members[0], all[at], again[at], false});
    }
  }
}

bool Trust::changed(const std::vector<std::uint64_t>& all, const std::vector<std::uint64_t>& again,
                    std::size_t columns, const Dissent& tied) const {
  const auto kind =
      std::ranges::find_if(kinds_, [&](const auto& k) { return std::ranges::find(k, tied.rank) != k.end(); });
  return kind != kinds_.end() && std::ranges::any_of(*kind, [&](int rank) {
           const std::size_t at = static_cast<std::size_t>(rank) * columns + tied.column;
           return all[at] != again[at];
         });
}

Outcome Trust::check(int step, const std::vector<std::uint64_t>& all, const std::vector<std::string>& names,
                     bool alone, const std::function<std::vector<std::uint64_t>()>& repeat) {
  const std::size_t columns = names.size();
  const int me = context_.world.rank();
  std::vector<Dissent> dissents = votes(all, columns);
  Outcome outcome;
  const bool lone = alone && std::ranges::any_of(kinds_, [](const auto& k) { return k.size() == 1; });
  if (dissents.empty() && !lone) return outcome;
  const std::vector<std::uint64_t> again = gather(repeat());
  outcome.lasting = !votes(again, columns).empty();
  if (alone) add_unsteady(all, again, columns, dissents);
  bool unsettled = false;
  for (const Dissent& d : dissents) {
    unsettled = unsettled || (d.tied && !changed(all, again, columns, d));
    const std::uint64_t repeated = again[static_cast<std::size_t>(d.rank) * columns + d.column];
    // Without a majority the rank that cannot repeat its result was wrong; if all can, the wrong one is
    // unknown.
    if (d.tied && repeated == d.seen) continue;
    if (d.rank != me) continue;
    ++outcome.mine;
    add_wrong(step, d.column, names, d.tied ? repeated : d.expected, d.seen, repeated);
  }
  if (unsettled)
    context_.record.set_state(results::CaseState::fail,
                              fmt::format("ranks differ at step {}, without a majority, and again when "
                                          "repeated: one of them computes wrongly",
                                          step));
  return outcome;
}

}  // namespace assay::train
