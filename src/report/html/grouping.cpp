// SPDX-License-Identifier: Apache-2.0
#include "report/html/grouping.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "measure/statistics.hpp"

namespace assay::report {
namespace {

/// Whether a number in the name of its case is its size: others number the paths of storage. Of cases of
/// other tools nothing but the name may tell.
bool is_size(const verdict::Series& s, double number) {
  if (s.first == nullptr) return false;
  for (const char* key : {"bytes", "n"}) {
    const auto it = s.first->parameters.find(key);
    if (it != s.first->parameters.end() && it->is_number()) return it->get<double>() == number;
  }
  return s.is_imported();
}

/// "latency-8-node" -> "latency-*-node" and 8, by the first part of the name that is a size; no star: none
/// is.
std::pair<std::string, double> starred(const verdict::Series& s) {
  const std::string& name = s.name;
  for (std::size_t from = 0; from < name.size();) {
    const std::size_t dash = std::min(name.find('-', from), name.size());
    double number = 0;
    const auto [end, error] = std::from_chars(name.data() + from, name.data() + dash, number);
    if (from > 0 && error == std::errc{} && end == name.data() + dash && number > 0 && is_size(s, number))
      return {name.substr(0, from) + "*" + name.substr(dash), number};
    from = dash + 1;
  }
  return {name, 0};
}

/// Switch of a node's first NIC, to bring neighbours together.
std::map<std::int32_t, std::string> switches_of(const verdict::Judgement& j) {
  std::map<std::int32_t, std::string> out;
  const auto nic = j.results.inventory.find("nic");
  if (nic == j.results.inventory.end() || !nic->second.text.contains("switch")) return out;
  const auto& text = nic->second.text.at("switch");
  for (std::size_t i = 0; i < nic->second.entity.size(); ++i)
    out.try_emplace(j.entities.node(nic->second.entity[i]), text[i]);
  return out;
}

/// What comes after the node's name, in numbers that are equal for equal names.
class Rails {
 public:
  explicit Rails(const verdict::Judgement& j) : j_(j), known_(j.results.entities.size(), -1) {}

  std::int32_t of(std::int32_t row) {
    if (row < 0 || static_cast<std::size_t>(row) >= known_.size() || j_.entities.node(row) == row) return -1;
    auto& at = known_[static_cast<std::size_t>(row)];
    if (at < 0) {
      const std::string& whole = j_.results.entities[static_cast<std::size_t>(row)].name;
      const auto [it, fresh] =
          numbers_.try_emplace(whole.substr(whole.rfind('/') + 1), static_cast<std::int32_t>(names_.size()));
      if (fresh) names_.push_back(it->first);
      at = it->second;
    }
    return at;
  }
  const std::string& name(std::int32_t number) const { return names_[static_cast<std::size_t>(number)]; }

 private:
  const verdict::Judgement& j_;
  std::vector<std::int32_t> known_;
  std::map<std::string, std::int32_t> numbers_;
  std::vector<std::string> names_;
};

struct Link {
  std::size_t at = 0;  ///< [from, to]
  std::int32_t rail = -1;
  double value = 0;
  std::int32_t from = -1, to = -1;
};

/// Deficits are counted from `centre`; `n`: ends to a side.
Grid grid_of(const std::vector<Link>& links, std::size_t n, double centre, bool higher) {
  Grid g;
  g.links = links.size();
  std::vector<double> all;
  for (const Link& l : links) {
    all.push_back(l.value);
    const double deficit = verdict::deficit_of(l.value, centre, higher);
    if (!std::isnan(deficit)) g.pairs.push_back({l.at / n, l.at % n, deficit});
  }
  std::ranges::sort(g.pairs, {}, [](const MeasuredPair& p) { return std::tuple(p.from, p.to, -p.deficit); });
  const auto copies =
      std::ranges::unique(g.pairs, {}, [](const MeasuredPair& p) { return std::pair(p.from, p.to); });
  g.pairs.erase(copies.begin(), copies.end());
  g.median = median(all);
  return g;
}

/// Nodes of the links of one rail, or of all.
void add_ends(Matrix& m, const std::string& rail, const std::vector<Link>& links, bool higher) {
  const std::size_t n = m.nodes.size();
  std::vector<std::vector<double>> sends(n), receives(n);
  for (const Link& l : links) {
    const double deficit = verdict::deficit_of(l.value, m.all.median, higher);
    sends[l.at / n].push_back(deficit);
    receives[l.at % n].push_back(deficit);
  }
  for (std::size_t i = 0; i < n; ++i)
    if (const std::size_t of = sends[i].size() + receives[i].size(); of > 0)
      m.ends.push_back({m.nodes[i], rail, median(sends[i]), median(receives[i]), of});
}

void add_slowest(Matrix& m, const std::vector<Link>& links, bool higher) {
  constexpr std::size_t most = 12;
  const auto deficit = [&](const Link& l) { return verdict::deficit_of(l.value, m.all.median, higher); };
  std::vector<const Link*> order;
  for (const Link& l : links)
    if (!std::isnan(deficit(l))) order.push_back(&l);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::ranges::partial_sort(order, order.begin() + shown, {},
                            [&](const Link* l) { return std::tuple(-deficit(*l), l->at, l->from, l->to); });
  for (const Link* l : std::span(order).first(static_cast<std::size_t>(shown)))
    m.slowest.push_back({l->from, l->to, l->value, deficit(*l)});
}

void split_by_rail(Matrix& m, const std::vector<Link>& links, const Rails& rails, bool higher) {
  std::map<std::string, std::vector<Link>> groups;
  std::map<std::int32_t, std::vector<Link>*> known;
  for (const Link& l : links) {
    auto& group = known[l.rail];
    if (group == nullptr) group = &groups[l.rail < 0 ? across_rails : rails.name(l.rail)];
    group->push_back(l);
  }
  if (groups.size() < 2) return;
  for (const auto& [name, own] : groups) {
    m.rails.push_back({name, grid_of(own, m.nodes.size(), m.all.median, higher)});
    add_ends(m, name, own, higher);
  }
}

Matrix matrix_of(const verdict::Judgement& j, const verdict::Series& s,
                 const std::map<std::int32_t, std::string>& switches, Rails& rails) {
  Matrix m;
  m.series = &s;
  m.inside = std::all_of(s.rows.begin(), s.rows.end(), [&](const auto& r) {
    return j.entities.node(r.source) == j.entities.node(r.destination);
  });
  const auto end = [&](std::int32_t row) { return m.inside ? row : j.entities.node(row); };
  constexpr auto absent = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place(j.results.entities.size(), absent);
  for (const auto& row : s.rows) {
    const auto from = end(row.source), to = end(row.destination);
    if (from < 0 || to < 0) continue;
    for (const auto at : {from, to})
      if (std::exchange(place[static_cast<std::size_t>(at)], 0) == absent) m.nodes.push_back(at);
  }
  const std::string unknown;
  const auto switch_of = [&](std::int32_t row) -> const std::string& {
    const auto it = switches.find(j.entities.node(row));
    return it == switches.end() ? unknown : it->second;
  };
  std::ranges::sort(m.nodes, [&](std::int32_t a, std::int32_t b) {
    const std::string &one = switch_of(a), &other = switch_of(b);
    return one == other ? a < b : ByNumber()(one, other);
  });
  for (std::size_t i = 0; i < m.nodes.size(); ++i) place[static_cast<std::size_t>(m.nodes[i])] = i;
  std::vector<Link> links;
  bool on_rails = false;
  for (const auto& row : s.rows) {
    const auto from = end(row.source), to = end(row.destination);
    if (from < 0 || to < 0) continue;
    const auto a = rails.of(row.source), b = rails.of(row.destination);
    on_rails = on_rails || (a >= 0 && b >= 0);
    links.push_back(
        {place[static_cast<std::size_t>(from)] * m.nodes.size() + place[static_cast<std::size_t>(to)],
         a == b ? a : -1, row.median, row.source, row.destination});
  }
  std::vector<double> values;
  for (const Link& l : links) values.push_back(l.value);
  const bool higher = s.better != results::Better::lower;
  m.all = grid_of(links, m.nodes.size(), median(values), higher);
  if (on_rails && !m.inside) split_by_rail(m, links, rails, higher);
  if (m.rails.empty()) add_ends(m, "", links, higher);
  std::ranges::stable_sort(m.ends, std::greater{},
                           [](const EndRates& e) { return std::fmax(e.sends, e.receives); });
  add_slowest(m, links, higher);
  return m;
}

}  // namespace

std::vector<Sweep> sweeps_of(const verdict::Judgement& j) {
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<std::pair<double, const verdict::Series*>>> groups;
  std::vector<Sweep> sweeps;
  for (const auto& s : j.series) {
    const auto [name, size] = starred(s);
    if (size <= 0 || s.rows.empty() || s.unit == "count" || !s.judged) continue;
    const std::string title = s.suite + "/" + name + ":" + s.metric;
    const auto [it, fresh] = known.try_emplace(title, groups.size());
    if (fresh) {
      groups.emplace_back();
      sweeps.push_back({title, s.unit, s.better != results::Better::lower, {}, {}});
    }
    groups[it->second].emplace_back(size, &s);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::stable_sort(groups[g].begin(), groups[g].end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [size, series] : groups[g]) {
      if (!sweeps[g].sizes.empty() && sweeps[g].sizes.back() == size) continue;
      sweeps[g].sizes.push_back(size);
      sweeps[g].series.push_back(series);
    }
  }
  std::erase_if(sweeps, [](const Sweep& s) { return s.sizes.size() < 3; });
  return sweeps;
}

Matrices matrices_of(const verdict::Judgement& j) {
  Matrices out;
  const auto switches = switches_of(j);
  Rails rails(j);
  for (const auto& s : j.series) {
    if (s.kind != "link" || !s.judged || s.rows.empty()) continue;
    if (out.shown.size() == matrices_shown) {
      ++out.more;
      continue;
    }
    Matrix m = matrix_of(j, s, switches, rails);
    if (m.all.links > 0 && m.nodes.size() > 1) out.shown.push_back(std::move(m));
  }
  return out;
}

}  // namespace assay::report
