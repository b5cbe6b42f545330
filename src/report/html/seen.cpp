// SPDX-License-Identifier: Apache-2.0
#include "report/html/seen.hpp"

#include <algorithm>

#include "report/link_ends.hpp"

namespace assay::report {
namespace {

void add(Seen::Rows& out, const Seen::Rows& rows) {
  out.counters.insert(out.counters.end(), rows.counters.begin(), rows.counters.end());
  out.events.insert(out.events.end(), rows.events.begin(), rows.events.end());
  out.flags.insert(out.flags.end(), rows.flags.begin(), rows.flags.end());
}

/// Rows of one vector in its order, each once.
template <class Row>
void order(std::vector<const Row*>& rows) {
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
}

}  // namespace

Seen::Seen(const results::Results& results) {
  for (const auto& entity : results.entities)
    if (entity.kind == "nic") parts_[entity.name].nic = true;
  const auto part = [&](std::int32_t row) -> Rows* {
    if (row < 0 || static_cast<std::size_t>(row) >= results.entities.size()) return nullptr;
    return &parts_[results.entities[static_cast<std::size_t>(row)].name].rows;
  };
  for (const auto& c : results.counters)
    if (c.after > c.before)
      if (Rows* rows = part(c.entity)) rows->counters.push_back(&c);
  for (const auto& e : results.events)
    if (Rows* rows = part(e.entity)) rows->events.push_back(&e);
  for (const auto& f : results.flags)
    if (Rows* rows = part(f.entity)) rows->flags.push_back(&f);
}

void Seen::add_above(const std::string& name, Rows& out) const {
  for (auto end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1))
    if (const auto at = parts_.find(name.substr(0, end)); at != parts_.end()) add(out, at->second.rows);
}

void Seen::add_below(const std::string& name, bool nics_only, Rows& out) const {
  const std::string begin = name + "/";
  for (auto at = parts_.lower_bound(begin); at != parts_.end() && at->first.starts_with(begin); ++at)
    if (at->second.nic || !nics_only) add(out, at->second.rows);
}

void Seen::add_end(const std::string& name, Rows& out) const {
  const auto at = parts_.find(name);
  if (at != parts_.end()) add(out, at->second.rows);
  add_above(name, out);
  // Which NICs the messages of a device or node take is not known.
  if (at == parts_.end() || !at->second.nic) add_below(node_of(name), true, out);
}

Seen::Rows Seen::near(const std::string& name) const {
  Rows out;
  const auto ends = ends_of(name);
  if (ends.size() > 1)
    for (const auto& end : ends) add_end(end, out);
  if (const auto at = parts_.find(name); at != parts_.end()) add(out, at->second.rows);
  if (ends.size() == 1) {
    add_above(name, out);
    add_below(name, false, out);
  }
  order(out.counters);
  order(out.events);
  order(out.flags);
  return out;
}

std::vector<const results::FlagRow*> thinned(const std::vector<results::FlagRow>& flags, std::size_t most) {
  std::map<std::int32_t, std::vector<const results::FlagRow*>> by_part;
  for (const auto& f : flags)
    if (f.value != 0) by_part[f.entity].push_back(&f);
  const auto kept = [&](std::size_t every) {
    std::size_t n = 0;
    for (const auto& [part, of_part] : by_part) n += (of_part.size() + every - 1) / every;
    return n;
  };
  std::size_t every = 1;
  while (kept(every) > most && kept(every) > by_part.size()) every *= 2;
  const std::size_t parts = std::max<std::size_t>(1, (kept(every) + most - 1) / most);
  std::vector<const results::FlagRow*> out;
  std::size_t at = 0;
  for (const auto& [part, of_part] : by_part)
    for (std::size_t i = 0; i < of_part.size(); i += every)
      if (at++ % parts == 0) out.push_back(of_part[i]);
  return out;
}

}  // namespace assay::report
