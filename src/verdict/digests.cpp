// SPDX-License-Identifier: Apache-2.0
// Digests of results that equal devices must have alike, bit by bit: who contradicts the majority, or itself
// when the same inputs are computed again. Where there is no majority that is asked for.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "verdict/corrupt.hpp"
#include "verdict/retest/candidates.hpp"

namespace assay::verdict {
namespace {

using results::CaseData;
using results::IntegerArray;

/// A view of an integer array as [entity][everything else].
struct DigestView {
  const IntegerArray& array;
  results::Held<std::uint64_t> values;
  std::size_t entity_dim = 0, entities = 0, inner = 1, outer = 1;
  bool per_sample = false;  ///< [entity, sample]
  bool of_samples = false;  ///< has that dimension anywhere: how many there are may differ from time to time

  explicit DigestView(const IntegerArray& a) : array(a), values(a.values.held()) {
    const auto it = std::find(a.dims.begin(), a.dims.end(), "entity");
    entity_dim = it == a.dims.end() ? 0 : static_cast<std::size_t>(it - a.dims.begin());
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
      if (d < entity_dim) outer *= a.shape[d];
      if (d == entity_dim) entities = a.shape[d];
      if (d > entity_dim) inner *= a.shape[d];
    }
    per_sample = a.dims.size() == 2 && entity_dim == 0 && a.dims[1] == "sample";
    of_samples = std::find(a.dims.begin(), a.dims.end(), "sample") != a.dims.end();
    if (outer * entities * inner != values.size()) entities = 0;  // not the shape it claims
  }
  std::size_t columns() const noexcept { return outer * inner; }
  std::uint64_t at(std::size_t entity, std::size_t column) const {
    const std::size_t o = column / inner, i = column % inner;
    return values[(o * entities + entity) * inner + i];
  }
};

/// Of the columns in which an entity is wrong, how many, and the first.
struct Wrong {
  std::size_t columns = 0, first = 0;
  std::uint64_t seen = 0, expected = 0;
  void add(std::size_t column, std::uint64_t is, std::uint64_t other) {
    if (columns++ == 0) *this = {1, column, is, other};
  }
};

/// What the digests of one case and stratum say; keys are positions of entities in the case.
struct Outcome {
  const CaseData* c = nullptr;
  const IntegerArray* array = nullptr;
  std::size_t columns = 0;
  std::map<std::size_t, Wrong>
      unsteady;  ///< gave another result for the same inputs; `expected` is the second one
  std::map<std::size_t, Wrong> outvoted;
  std::set<std::size_t> tied;
  std::string label;                 ///< of the stratum
  std::vector<std::size_t> members;  ///< of it
  bool replayed = false;             ///< all that are tied computed again, and got what they had
};

/// What its inputs were drawn from, where the case tells: two runs with the same must have the same results.
std::string inputs_of(const CaseData& c) {
  const auto it = c.parameters.find("inputs");
  return it != c.parameters.end() && it->is_string() ? it->get<std::string>() : "";
}

bool is_replay_of(const CaseData& retest, const CaseData& c) {
  return retest_number(retest.name) > 0 && retest_number(c.name) == 0 && retest.suite == c.suite &&
         base_name(retest.name) == base_name(c.name) && retest.case_key == c.case_key &&
         !inputs_of(c).empty() && inputs_of(retest) == inputs_of(c);
}

bool has_run(const CaseData& c) {
  return c.state == results::CaseState::pass || c.state == results::CaseState::fail;
}

const IntegerArray* array_of(const CaseData& c, const std::string& name) {
  const auto it =
      std::find_if(c.arrays.begin(), c.arrays.end(), [&](const auto& a) { return a.name == name; });
  return it == c.arrays.end() ? nullptr : &*it;
}

/// Of the replays of a case, who contradicts itself, and who was computed again at all.
std::set<std::size_t> compare_replays(const Judgement& j, const DigestView& view,
                                      const std::vector<std::size_t>& members, Outcome& out) {
  std::set<std::size_t> replayed;
  for (const auto& replay : j.results.cases) {
    if (!has_run(replay) || !is_replay_of(replay, *out.c)) continue;
    const auto* array = array_of(replay, view.array.name);
    if (array == nullptr || view.of_samples) continue;
    const DigestView second(*array);
    if (second.entities != replay.entity.size() || second.columns() != view.columns()) continue;
    std::unordered_map<std::int32_t, std::size_t> rows;
    for (std::size_t r = 0; r < replay.entity.size(); ++r) rows[replay.entity[r]] = r;
    for (const auto e : members) {
      const auto at = rows.find(out.c->entity[e]);
      if (at == rows.end()) continue;
      replayed.insert(e);
      const std::size_t row = at->second;
      for (std::size_t column = 0; column < view.columns(); ++column) {
        const std::uint64_t before = view.at(e, column), now = second.at(row, column);
        if (before != now && before != results::no_digest && now != results::no_digest)
          out.unsteady[e].add(column, before, now);
      }
    }
  }
  return replayed;
}

/// Whether an entity computed the digest of a column.
bool has_digest(const CaseData& c, const DigestView& view, std::size_t e, std::size_t column) {
  const bool taken = e >= c.count.size() ||
                     (view.per_sample ? static_cast<std::int64_t>(column) < c.count[e] : c.count[e] > 0);
  return taken && view.at(e, column) != results::no_digest;
}

/// Votes column by column among `members` (entity positions of one stratum).
Outcome vote(const Judgement& j, const CaseData& c, const DigestView& view,
             const std::vector<std::size_t>& members) {
  Outcome out;
  out.c = &c;
  out.array = &view.array;
  out.columns = view.columns();
  const auto replayed = compare_replays(j, view, members, out);
  for (std::size_t column = 0; column < view.columns(); ++column) {
    std::map<std::uint64_t, std::vector<std::size_t>> votes;
    std::size_t total = 0;
    for (const auto e : members) {
      if (!has_digest(c, view, e, column) || out.unsteady.contains(e)) continue;
      votes[view.at(e, column)].push_back(e);
      ++total;
    }
    if (votes.size() < 2) continue;
    const auto truth =
        std::find_if(votes.begin(), votes.end(), [&](const auto& v) { return 2 * v.second.size() > total; });
    for (const auto& [value, voters] : votes) {
      for (const auto e : voters) {
        if (truth == votes.end()) out.tied.insert(e);
        if (truth != votes.end() && value != truth->first) out.outvoted[e].add(column, value, truth->first);
      }
    }
  }
  out.replayed =
      !out.tied.empty() && std::includes(replayed.begin(), replayed.end(), out.tied.begin(), out.tied.end());
  return out;
}

/// What a result was computed with, where the case tells: the number of threads, the library and the vector
/// unit (Device::arithmetic) decide the order of summation.
std::string computed_with(const CaseData& c, std::size_t row) {
  std::string text;
  for (const char* name : {"threads", "arithmetic"}) {
    const auto* told = array_of(c, name);
    if (told != nullptr && told->values.size() == c.entity.size())
      text += std::string(" ") + name + " " + std::to_string(told->values[row]);
  }
  return text;
}

/// Different processors may round differently by right: only equal ones vote together.
std::map<std::string, std::vector<std::size_t>> equals_of(const Judgement& j, const CaseData& c) {
  std::unordered_map<std::int32_t, std::string> strata;
  for (const auto& s : j.series) {
    if (s.first != &c && !(s.suite == c.suite && s.name == base_name(c.name))) continue;
    for (const auto& row : s.rows) strata[row.entity] = s.strata[static_cast<std::size_t>(row.stratum)];
    break;
  }
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t e = 0; e < c.entity.size(); ++e)
    groups[strata[c.entity[e]] + computed_with(c, e)].push_back(e);
  return groups;
}

/// All digests of the run. `misshapen` is told of arrays that cannot be read.
template <class Misshapen>
std::vector<Outcome> outcomes(const Judgement& j, Misshapen&& misshapen) {
  std::vector<Outcome> all;
  for (const auto& c : j.results.cases) {
    const bool any = std::any_of(c.arrays.begin(), c.arrays.end(),
                                 [](const auto& array) { return array.name.starts_with("digest"); });
    if (!has_run(c) || !any) continue;  // most have none, and each would look at all others
    const bool second = std::any_of(j.results.cases.begin(), j.results.cases.end(), [&](const auto& first) {
      return has_run(first) && is_replay_of(c, first);
    });
    for (const auto& array : c.arrays) {
      if (!array.name.starts_with("digest")) continue;
      const DigestView view(array);
      if (view.entities != c.entity.size()) {
        if (!c.entity.empty()) misshapen(c.path() + ": " + array.name + " does not have one row per entity");
        continue;
      }
      if (second && !view.of_samples) continue;  // heard with the first
      for (const auto& [label, members] : equals_of(j, c)) {
        all.push_back(vote(j, c, view, members));
        all.back().label = label;
        all.back().members = members;
      }
    }
  }
  return all;
}

std::string list(const std::vector<std::string>& names) {
  std::string text = names.front();
  const std::size_t shown = std::min<std::size_t>(names.size(), 8);
  for (std::size_t i = 1; i < shown; ++i) text += (i + 1 == names.size() ? " and " : ", ") + names[i];
  return text + (names.size() > shown ? " and " + std::to_string(names.size() - shown) + " more" : "");
}

void tell_wrong(Judgement& j, const Outcome& o, const std::map<std::size_t, Wrong>& wrong,
                const std::string& against, const std::string& between) {
  for (const auto& [e, w] : wrong) {
    add_corrupt(j, o.c->entity[e], o.c->path(), "/cases/" + o.c->path() + "/" + o.array->name,
                with_rank(j, o.c->entity[e]) + ": " + o.array->name + " of " + o.c->path() + against +
                    " in " + std::to_string(w.columns) + " of " + std::to_string(o.columns) + ", first at " +
                    std::to_string(w.first) + ": " + hex(w.seen) + between + hex(w.expected),
                static_cast<std::int64_t>(w.columns));
  }
}

void tell_tie(Judgement& j, const Outcome& o) {
  std::vector<std::int32_t> rows;
  auto f = j.about(-1, "WARN", "fact", "corrupt");
  for (const auto e : o.tied) {
    rows.push_back(o.c->entity[e]);
    f.members.push_back(j.entities.name(o.c->entity[e]));
  }
  f.confirm("");
  f.suite = o.c->suite;
  f.metric = o.c->path() + ":" + o.array->name;
  f.action = "TRIAGE";
  f.evidence = "/cases/" + o.c->path() + "/" + o.array->name;
  f.text =
      o.array->name + " of " + o.c->path() + " differs between " + list(f.members) + " without a majority: " +
      (o.replayed ? "a replay repeated both results; a third equal device is needed to find the wrong one"
                  : "replay the case to find which result is wrong");
  j.add(std::move(f), rows, true);
}

/// One note of each suite: a wrong result of these devices is not found.
void tell_alone(Judgement& j, const std::string& suite, const std::set<std::int32_t>& alone) {
  const std::vector<std::int32_t> rows(alone.begin(), alone.end());
  auto f = j.about(rows.size() == 1 ? rows.front() : -1, "INFO", "fact", "uncovered");
  for (const std::int32_t row : rows) f.members.push_back(j.entities.name(row));
  f.suite = suite;
  f.evidence = "/cases/" + suite;
  f.text = list(f.members) + (rows.size() == 1 ? " has" : " have") +
           " no equal (processor, threads, math library, vector unit): digests of " + suite +
           " that depend on these are compared with none";
  j.add(std::move(f), rows);
}

}  // namespace

void judge_digests(Judgement& j) {
  std::map<std::string, std::map<std::string, std::set<std::int32_t>>> compared;  // by suite and stratum
  for (const auto& o : outcomes(j, [&](const std::string& reason) { j.gap(reason); })) {
    tell_wrong(j, o, o.unsteady, " differs between two computations", ", then ");
    tell_wrong(j, o, o.outvoted, " differs from the majority", " instead of ");
    if (!o.tied.empty()) tell_tie(j, o);
    if (retest_number(o.c->name) > 0) continue;  // of some devices only
    for (const auto e : o.members) compared[o.c->suite][o.label].insert(o.c->entity[e]);
  }
  for (const auto& [suite, strata] : compared) {
    std::set<std::int32_t> all, alone;
    for (const auto& [label, rows] : strata) {
      all.insert(rows.begin(), rows.end());
      if (rows.size() == 1) alone.insert(rows.begin(), rows.end());
    }
    if (all.size() > 1 && !alone.empty()) tell_alone(j, suite, alone);
  }
}

std::vector<Retest> digest_retests(const Judgement& j) {
  std::vector<Retest> asked;
  for (const auto& o : outcomes(j, [](const std::string&) {})) {
    const bool repeatable =
        !inputs_of(*o.c).empty() && retest_number(o.c->name) == 0 && base_name(o.c->name) == o.c->name;
    if (o.tied.empty() || o.replayed || !repeatable) continue;
    Retest r = next_retest(j, o.c->suite, o.c->name, o.array->name);
    r.samples = 3;  // its value does not depend on how often: once a visit
    for (const auto e : o.tied) r.candidates.push_back(o.c->entity[e]);
    asked.push_back(std::move(r));
  }
  return asked;
}

}  // namespace assay::verdict
