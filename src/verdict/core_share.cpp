// SPDX-License-Identifier: Apache-2.0
// A rank whose core others use is slow without a fault of its own: the finding names what took the core.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/judgement.hpp"
#include "verdict/retest/result.hpp"

namespace assay::verdict {
namespace {

constexpr std::size_t shares_looked_at = 256;

struct Shares {
  double own = results::not_taken, others = results::not_taken;
  bool known() const noexcept { return !std::isnan(own); }
};

/// A row of a case tells of a part: of itself, of a rank of this node, of a link that ends here.
bool tells_of(const Judgement& j, std::int32_t row, std::int32_t part) {
  if (row == part) return true;
  const bool both_devices = j.entities.kind(row) == "device" && j.entities.kind(part) == "device";
  return !both_devices && j.entities.node(row) >= 0 && j.entities.node(row) == j.entities.node(part);
}

Shares shares_in(const Judgement& j, const results::CaseData& c, std::int32_t part) {
  const auto* m = c.find(results::core_share);
  Shares found;
  if (m == nullptr || m->per_sample) return found;
  std::vector<double> own, others;
  const auto shares = m->values.held();
  for (std::size_t r = 0; r < std::min(c.entity.size(), shares.size()); ++r) {
    if (!(shares[r] > 0 && shares[r] <= 1)) continue;
    const bool link = r < c.source.size() && r < c.destination.size();
    const bool mine = link ? tells_of(j, c.source[r], part) || tells_of(j, c.destination[r], part)
                           : tells_of(j, c.entity[r], part);
    (mine ? own : others).push_back(shares[r]);
  }
  if (!own.empty()) found.own = median(own);
  if (!others.empty()) found.others = median(others);
  return found;
}

/// From the measurement that the finding rests on: the last retest of this part where it was confirmed by
/// one, else the screening.
Shares shares_of(const Judgement& j, const Series& s, bool by_retest, std::int32_t part) {
  Shares screened, retested;
  for (const auto& c : j.results.cases) {
    const bool retest = is_retest_of(c, s);
    if (!retest && (retest_number(c.name) > 0 || c.suite != s.suite || base_name(c.name) != s.name)) continue;
    const Shares seen = shares_in(j, c, part);
    if (seen.known()) (retest ? retested : screened) = seen;
  }
  return by_retest && retested.known() ? retested : screened;
}

/// A reference from elsewhere was measured on cores of its own.
bool explains(const Shares& shares, const results::Finding& f) {
  const bool beside = f.reference_kind == "peers" && !std::isnan(shares.others);
  const double ratio = beside ? shares.own / shares.others : shares.own;
  return shares.known() && ratio < constants::core_share_least &&
         std::log(ratio) <= constants::core_share_part * std::log1p(-*f.deficit);
}

/// Two ranks on one core are slow with each other and not with others: on shared cores a pair alone proves no
/// fault, however many cores the others lack.
bool is_pair_on_shared_core(const Shares& shares, const results::Finding& f) {
  return f.level == "link" && f.severity == "FAIL" && f.reference_kind == "peers" && shares.known() &&
         shares.own < constants::core_share_least;
}

/// "the cgroup's CPU quota is 0.2 of 1 core", empty where there is none that its ranks reach.
std::string quota_of(const Judgement& j, std::int32_t node) {
  const auto table = j.results.inventory.find("node");
  if (table == j.results.inventory.end()) return "";
  const auto* quotas = number_column(table->second, {"cpu_quota_cores"});
  int cores = 0;
  for (std::size_t row = 0; row < j.entities.size(); ++row)
    if (j.entities.node(static_cast<std::int32_t>(row)) == node)
      cores += j.entities.cores(static_cast<std::int32_t>(row));
  for (std::size_t i = 0; quotas != nullptr && i < quotas->size(); ++i) {
    if (table->second.entity[i] != node || !((*quotas)[i] < cores)) continue;
    char text[96];
    std::snprintf(text, sizeof text, "the cgroup's CPU quota is %.4g of %d core%s", (*quotas)[i], cores,
                  cores == 1 ? "" : "s");
    return text;
  }
  return "";
}

std::string process_on(const Judgement& j, std::int32_t part) {
  for (const auto& e : j.results.events)
    if (e.kind == results::core_share_event && tells_of(j, e.entity, part)) return e.text;
  return "";
}

void attribute(Judgement& j, Found& found, std::int32_t part, const Shares& shares) {
  results::Finding& f = found.finding;
  const std::string quota = quota_of(j, j.entities.node(part)), process = process_on(j, part);
  f.text = f.text.substr(0, f.text.find("; next:")) + "; " + j.entities.name(part) + " ran for " +
           percent(shares.own) + " of the time in which it was ready to run" +
           (std::isnan(shares.others) ? "" : " (others " + percent(shares.others) + ")") + ": ";
  f.text += !quota.empty()    ? quota + "; next: raise it"
            : process.empty() ? "its core was shared, but no other process is visible on it"
                              : "its core was shared with " + process + "; next: end it, test again";
  if (f.severity == "INFO" || f.reference_kind == "limit") return;  // a contract says what it says
  f.kind = quota.empty() ? "shared-core" : "quota";
  f.action = "CONFIG";
  // A quota stays; another process says nothing about the part.
  if (quota.empty()) f.severity = "WARN";
}

/// What slows a link is at the end whose quota or other process is known, else at those that ran too little:
/// the other end only waits.
void keep_cause(const Judgement& j, const results::Finding& f, std::map<std::int32_t, Shares>& parts) {
  const auto keep = [&](const auto& is_cause) {
    if (std::any_of(parts.begin(), parts.end(), is_cause))
      std::erase_if(parts, [&](const auto& part) { return !is_cause(part); });
  };
  keep([&](const auto& part) { return explains(part.second, f); });
  keep([&](const auto& part) {
    return !quota_of(j, j.entities.node(part.first)).empty() || !process_on(j, part.first).empty();
  });
}

/// One that is slower than the others and not confirmed. Links wait for both of their ends: only what is slow
/// by more says something of them.
void doubt_on_shared_cores(const Judgement& j, const Series& s, results::Finding& f) {
  if (f.severity != "WARN" || f.reference_kind != "peers" || f.kind != "slow") return;
  const bool link = s.kind == "link";
  if (link && *f.deficit > constants::coarse_deficit) return;
  std::vector<std::int32_t> all;
  for (const auto& row : s.rows) all.push_back(link ? row.source : row.entity);
  note_shared_cores(j, s, all, f);
}

}  // namespace

bool lacks_core(const Judgement& j, const Series& s, std::int32_t part) {
  return shares_of(j, s, true, part).own < constants::core_share_least &&
         quota_of(j, j.entities.node(part)).empty();
}

bool note_shared_cores(const Judgement& j, const Series& s, const std::vector<std::int32_t>& parts,
                       results::Finding& f) {
  constexpr std::size_t looked_at = 16;  // of thousands of parts a few say what the others do
  const std::size_t stride = parts.size() / looked_at + 1;
  std::size_t lacking = 0, seen = 0;
  for (std::size_t i = 0; i < parts.size(); i += stride, ++seen)
    lacking += lacks_core(j, s, parts[i]) ? 1 : 0;
  if (seen == 0 || 2 * lacking < seen) return false;
  f.severity = "INFO";
  f.text = f.text.substr(0, f.text.find("; next:")) + "; most of them shared their cores";
  return true;
}

void attribute_core_share(Judgement& j) {
  for (auto& found : j.found) {
    const results::Finding& f = found.finding;
    if (found.rows.empty() || !f.deficit || !(*f.deficit > 0 && *f.deficit < 1)) continue;
    const Series* s = series_of(j, f);
    if (s == nullptr) continue;
    // One shared end slows a link; of several slow parts each needs its explanation.
    const bool link = s->kind == "link";
    std::map<std::int32_t, Shares> parts;
    // What confirms it from the screening (blocks, a counter) the retest did not show.
    const bool by_retest = f.confirmed_by == "retest" || f.confirmed_by == "others";
    // Of thousands of parts that are slow together some stand for all: each is looked for among all rows.
    const std::size_t stride = link ? 1 : found.rows.size() / shares_looked_at + 1;
    for (std::size_t i = 0; i < found.rows.size(); i += stride) {
      const auto part = found.rows[i];
      const Shares shares = shares_of(j, *s, by_retest, part);
      if (explains(shares, f) || is_pair_on_shared_core(shares, f)) {
        parts[part] = shares;
      } else if (!link) {
        parts.clear();
        break;  // of a thousand parts the first usually decides
      }
    }
    if (parts.empty()) {
      doubt_on_shared_cores(j, *s, found.finding);
      found.inconclusive = found.inconclusive && f.severity != "INFO";
      continue;
    }
    if (link) keep_cause(j, f, parts);
    const auto& [worst, least] = *std::min_element(
        parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second.own < b.second.own; });
    attribute(j, found, worst, least);
    // The cause is known.
    found.inconclusive = found.inconclusive && f.kind != "shared-core";
    // Of ends that are alike neither is the cause. A quota that the other end does not have is one, though
    // its share explains less: what it takes from single messages depends on when they come.
    if (!link || !(explains(least, f) || !quota_of(j, j.entities.node(worst)).empty())) continue;
    found.rows.clear();
    for (const auto& [part, shares] : parts) found.rows.push_back(part);
  }
}

}  // namespace assay::verdict
