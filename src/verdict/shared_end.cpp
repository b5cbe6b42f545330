// SPDX-License-Identifier: Apache-2.0
#include "verdict/shared_end.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/units.hpp"
#include "measure/statistics.hpp"
#include "verdict/constants.hpp"
#include "verdict/end_claims.hpp"
#include "verdict/network_links.hpp"

namespace assay::verdict {
namespace {

using shared_end::EndClaim;
using shared_end::Level;
using shared_end::Link;

/// Its median link: of those measured again if there are any.
const Below& median_of(const EndClaim& c) {
  std::vector<const Below*> links;
  for (const bool retested : {true, false}) {
    for (const auto* l : c.links)
      if (l->below != nullptr && l->below->retested == retested) links.push_back(l->below);
    if (!links.empty()) break;
  }
  const auto ratio = [](const Below* b) {
    return b->higher_is_better ? b->value / b->reference : b->reference / b->value;
  };
  const auto middle = links.begin() + static_cast<std::ptrdiff_t>(links.size() / 2);
  std::nth_element(links.begin(), middle, links.end(),
                   [&](const Below* a, const Below* b) { return ratio(a) < ratio(b); });
  return **middle;
}

std::string in_its_links(const EndClaim& c) {
  const auto count =
      std::count_if(c.links.begin(), c.links.end(), [](const Link* l) { return l->below != nullptr; });
  return "; median of " + std::to_string(count) + " of the " + std::to_string(c.links.size()) + " links " +
         (c.level == Level::across ? "between them"
          : c.level == Level::path ? c.in ? "between them" : "from the one to the other"
          : c.out && c.in          ? "it has"
          : c.out                  ? "it sends over"
                                   : "it receives over") +
         ", which are beyond it";
}

}  // namespace

void explain_by_ends(Judgement& j, const Series& s, std::vector<const SeriesRow*>& all,
                     std::vector<Below>& below, const std::string& reference_kind, const std::string& what) {
  if (s.kind != "link" || below.size() < constants::shared_end_partners) return;
  std::map<const SeriesRow*, const Below*> slow;
  for (const auto& b : below) slow[b.row] = &b;
  std::vector<Link> links;
  for (const auto* row : all) {
    if (row->source < 0 || row->destination < 0) continue;
    const auto it = slow.find(row);
    const Below* own = it == slow.end() ? nullptr : it->second;
    const bool counts = own == nullptr || !cleared(*own);
    links.push_back({row, counts ? own : nullptr, -1, counts});
  }
  const network::Places places(j);
  const auto claims = shared_end::claims_of(j, places, links);
  if (claims.empty()) return;
  for (const auto& c : claims) {
    Below b = median_of(c);
    b.entity = c.part;
    auto f = magnitude(j, s, b, reference_kind, what);
    const auto nic = c.level == Level::node ? places.only_nic(c.part) : -1;
    if (nic >= 0) f.part = j.entities.name(nic);
    f.text += in_its_links(c);
    if (c.level == Level::across) {
      f.text.replace(0, f.name.size(), "cluster: all links across switches");
      f.level = f.name = "cluster";
      f.id.clear();
      for (const auto row : c.switches) f.members.push_back(j.entities.name(row));
      f.text += "; switches " + first_of(f.members) + " or what joins them";
      j.add(std::move(f), {});
    } else if (c.level == Level::path) {
      f.text += "; either switch or what joins them";
      f.text.insert(f.name.size(), " and " + j.entities.name(c.other));
      f.name += " and " + j.entities.name(c.other);
      f.id.clear();
      j.add(std::move(f), {c.part, c.other});
    } else {
      j.add(std::move(f), {c.part});
    }
  }
  std::set<const SeriesRow*> explained;
  for (const auto& l : links)
    if (l.part >= 0) explained.insert(l.row);
  std::erase_if(below, [&](const Below& b) { return explained.contains(b.row); });
  std::erase_if(all, [&](const SeriesRow* row) { return explained.contains(row); });
}

}  // namespace assay::verdict
