// SPDX-License-Identifier: Apache-2.0
// Who talked to whom, and how fast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>

#include "base/units.hpp"
#include "report/html/grouping.hpp"
#include "report/html/markup.hpp"
#include "report/html/png.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"
#include "report/link_ends.hpp"
#include "verdict/link_coverage.hpp"

namespace assay::report {
namespace {

// Deficits from -10 % (faster, blue) over 0 (pale) to +20 % and more (slower, brown): blue and brown are told
// apart by all eyes.
constexpr std::size_t steps = 32;
constexpr double fastest = -0.10, slowest = 0.20;
constexpr std::uint8_t not_measured = 0;

std::vector<Rgb> palette() {
  const auto mix = [](double a, double b, double t) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * t));
  };
  std::vector<Rgb> colours{{200, 204, 210}};
  for (std::size_t i = 0; i < steps; ++i) {
    const double d = fastest + (slowest - fastest) * static_cast<double>(i) / (steps - 1);
    const double t = std::min(1.0, d < 0 ? d / fastest : d / slowest);
    colours.push_back(d < 0 ? Rgb{mix(247, 33, t), mix(245, 102, t), mix(240, 172, t)}
                            : Rgb{mix(247, 127, t), mix(245, 39, t), mix(240, 4, t)});
  }
  return colours;
}

std::uint8_t shade(double deficit) {
  if (std::isnan(deficit)) return not_measured;
  const double part = std::clamp((deficit - fastest) / (slowest - fastest), 0.0, 1.0);
  return static_cast<std::uint8_t>(1 + std::lround(part * (steps - 1)));
}

/// At most `most` points a side, and of a large matrix few enough that the pairs that were measured fill
/// them: a point of several pairs shows the slowest of them.
std::string image_of(const Grid& g, std::size_t n, std::size_t most, double left, double top, double size) {
  if (n > 128) {
    const double filled = std::sqrt(static_cast<double>(g.pairs.size()));
    most = std::min(most, std::max<std::size_t>(64, static_cast<std::size_t>(filled)));
  }
  const std::size_t fold = (n + most - 1) / most, side = (n + fold - 1) / fold;
  std::vector<double> worst(side * side, results::not_taken);
  for (const MeasuredPair& pair : g.pairs) {
    double& at = worst[pair.from / fold * side + pair.to / fold];
    if (std::isnan(at) || pair.deficit > at) at = pair.deficit;
  }
  std::vector<std::uint8_t> points;
  for (const double d : worst) points.push_back(shade(d));
  return fmt::format(
      "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" href=\"{}\"/>", left,
      top, size, size, png_uri(side, points, palette()));
}

/// Whom findings about links of this suite blame, or facts that hold for all: a slow memory is no matter of
/// the links.
std::set<std::string> claimed_in(const Page& page, const std::string& suite) {
  std::set<std::string> claimed;
  const auto of_links = [&](const results::Finding& f) {
    return f.metric.empty() || f.suite == suite || f.level == "nic" || f.level == "link" ||
           f.level == "switch";
  };
  for (const auto& f : page.in.verdict.findings) {
    if (f.severity == "INFO" || !of_links(f)) continue;
    for (const auto& end : ends_of(f.name)) claimed.insert({end, node_of(end)});
  }
  return claimed;
}

std::string marks(const Page& page, const Matrix& m, double left, double top, double size, bool named) {
  const std::set<std::string> claimed = claimed_in(page, m.series->suite);
  const double step = size / static_cast<double>(m.nodes.size());
  std::string body;
  for (std::size_t i = 0; i < m.nodes.size(); ++i) {
    const std::string name = page.in.judgement.entities.name(m.nodes[i]);
    if (!claimed.contains(name)) continue;
    const double at = static_cast<double>(i) * step;
    body += svg_rect(left, top + at, size, step, "claimed") + svg_rect(left + at, top, step, size, "claimed");
    if (named)
      body +=
          svg_text(left + size + 6, top + at + step / 2 + 4, "\u25C2 " + shortened(name, 16), "tick claim");
  }
  return body;
}

std::string picture_of(const Page& page, const Matrix& m) {
  constexpr double left = 96, top = 8, size = 380;
  const std::size_t n = m.nodes.size();
  std::string body = image_of(m.all, n, 256, left, top, size);
  const std::size_t every = std::max<std::size_t>(1, n / 16);
  const double step = size / static_cast<double>(n);
  for (std::size_t i = 0; i < n; i += every)
    body += svg_text(left - 6, top + (static_cast<double>(i) + 0.5) * step + 3,
                     shortened(page.in.judgement.entities.name(m.nodes[i]), 15), "tick end");
  body += marks(page, m, left, top, size, true);
  return svg(left + size + 110, top + size + 10, body,
             m.series->full() + ": matrix of pairs, rows send, columns receive", "plot matrix");
}

/// The same for each rail, small and side by side.
std::string rail_pictures(const Page& page, const Matrix& m) {
  if (m.rails.empty()) return "";
  std::string out = "<div class=\"rails\">";
  constexpr double size = 120;
  constexpr std::size_t most = 16;
  for (std::size_t i = 0; i < std::min(most, m.rails.size()); ++i) {
    const auto& [rail, grid] = m.rails[i];
    out += "<figure>" +
           svg(size, size, image_of(grid, m.nodes.size(), 64, 0, 0, size) + marks(page, m, 0, 0, size, false),
               m.series->full() + " on " + rail + ": rows send, columns receive", "plot rail") +
           fmt::format("<figcaption>{}: {}, {} links</figcaption></figure>", escaped(rail),
                       escaped(format_quantity(grid.median, m.series->unit)), grid.links);
  }
  out += "</div>\n";
  return m.rails.size() > most
             ? out + none(fmt::format("{} more rails: see the table.", m.rails.size() - most))
             : out;
}

/// Nodes by direction: one that sends well and receives badly shows here and nowhere else.
std::string ends_table(const Page& page, const Matrix& m) {
  std::vector<std::vector<Cell>> rows;
  for (const EndRates& e : m.ends | std::views::take(16))
    rows.push_back({markup_cell(part_link(page.in.judgement.entities.name(e.node))),
                    cell(e.rail.empty() ? "-" : e.rail), number_cell(signed_percent(-e.sends)),
                    number_cell(signed_percent(-e.receives)), number_cell(std::to_string(e.links))});
  return "<details class=\"more\"><summary>By node, rail and direction</summary>" +
         table("Nodes of " + m.series->full() + ", the slowest direction first",
               {{"node"}, {"rail or NIC"}, {"sends", "num"}, {"receives", "num"}, {"links", "num"}}, rows) +
         "</details>";
}

std::string slowest_links(const Page& page, const Matrix& m) {
  std::vector<std::vector<Cell>> rows;
  for (const SlowLink& l : m.slowest)
    rows.push_back({markup_cell(part_link(page.in.judgement.entities.name(l.from))),
                    markup_cell(part_link(page.in.judgement.entities.name(l.to))),
                    number_cell(l.value == m.series->dead_value ? "no valid value"
                                                                : format_quantity(l.value, m.series->unit)),
                    number_cell(signed_percent(-l.deficit))});
  return "<details class=\"more\"><summary>The slowest links</summary>" +
         table("Slowest links of " + m.series->full(),
               {{"from"}, {"to"}, {"median", "num"}, {"rate against the median", "num"}}, rows) +
         "</details>";
}

std::string colour_key() {
  std::string body;
  const auto colours = palette();
  constexpr double width = 6;
  for (std::size_t i = 1; i <= steps; ++i)
    body += fmt::format("<rect x=\"{}\" y=\"0\" width=\"{}\" height=\"12\" fill=\"#{:02x}{:02x}{:02x}\"/>",
                        coordinate(width * static_cast<double>(i)), width + 0.5, colours[i][0], colours[i][1],
                        colours[i][2]);
  body += svg_text(width, 26, "+10 %", "tick") + svg_text(width * 11.6, 26, "median", "tick middle") +
          svg_text(width * (steps + 1), 26, "\u221220 %", "tick end");
  body += fmt::format("<rect x=\"{}\" y=\"0\" width=\"14\" height=\"12\" fill=\"#c8ccd2\"/>",
                      coordinate(width * (steps + 4))) +
          svg_text(width * (steps + 7), 10, "not measured", "tick");
  return svg(320, 30, body, "colours of the matrices", "plot key");
}

/// Which links carried messages: counts by level, and those that carried none.
std::string coverage_of(const Page& page) {
  if (page.links.empty())
    return none("Link coverage is unknown: no case of this run records bytes between nodes.");
  std::string out = "<p>" + escaped(page.links) + ".</p>\n";
  const auto coverage = verdict::link_coverage(page.in.results);
  std::vector<std::vector<Cell>> rows;
  const auto add = [&](const char* level, std::size_t used, double there, const std::string& idle) {
    if (there > 0)
      rows.push_back({cell(level), number_cell(std::to_string(used)),
                      number_cell(fmt::format("{:.0f}", there)),
                      number_cell(fmt::format("{:.3g} %", 100 * static_cast<double>(used) / there)),
                      cell(idle.empty() ? "-" : idle, "wide")});
  };
  std::vector<std::string> idle;
  const auto counted = [&](const auto& uses, const auto& name) {
    idle.clear();
    std::size_t used = 0, unknown = 0;
    for (const auto& [key, use] : uses) {
      if (use.bytes > 0)
        ++used;
      else if (coverage.idle(use))
        idle.push_back(name(key));
      else
        ++unknown;
    }
    if (unknown > 0) idle.push_back(fmt::format("{} unknown", unknown));
    return used;
  };
  add("pairs of nodes", coverage.nodes.size(), coverage.node_pairs, "");
  const std::size_t across = coverage.nics.size() - coverage.along_rails;
  add("pairs of NICs of one name", coverage.along_rails, coverage.nic_pairs,
      across > 0 ? fmt::format("not counted: {} pairs across rails, which carried messages", across) : "");
  const std::size_t cables =
      counted(coverage.cables, [&](std::int32_t row) { return page.in.judgement.entities.name(row); });
  add("cables from NIC to switch", cables, static_cast<double>(coverage.cables.size()),
      verdict::first_of(idle));
  const std::size_t switches =
      counted(coverage.switches, [](const auto& pair) { return pair.first + "-" + pair.second; });
  add("pairs of switches", switches, static_cast<double>(coverage.switches.size()), verdict::first_of(idle));
  return out + table("Link coverage: what carried messages of this run",
                     {{"links"},
                      {"carried", "num"},
                      {"there are", "num"},
                      {"share", "num"},
                      {"without bytes", "wide"}},
                     rows);
}

}  // namespace

std::string matrices_section(const Page& page) {
  if (page.matrices.shown.empty())
    return none(
               "No pairs were measured in this run: there is no matrix. Suites that measure pairs: see assay "
               "list.") +
           coverage_of(page);
  std::string out =
      coverage_of(page) +
      "<p>Rows send, columns receive, ordered by switch; colour is the rate against the median "
      "of all links. A point shows the slowest link of its pair, or pairs. Parts that a finding "
      "names are marked.</p>" +
      colour_key() + "\n<div class=\"pair\">";
  for (const Matrix& m : page.matrices.shown) {
    out += "<div><h3>" + escaped(m.series->full()) + "</h3>" +
           figure(picture_of(page, m),
                  fmt::format("{} links, median {}; {}", m.all.links,
                              format_quantity(m.all.median, m.series->unit),
                              m.inside ? "between parts of one node" : "between nodes"),
                  fmt::format("matrix/{}", m.series - page.in.judgement.series.data())) +
           rail_pictures(page, m) + ends_table(page, m) + slowest_links(page, m) + "</div>\n";
  }
  if (page.matrices.more > 0)
    out += none(fmt::format("{} more matrices: assay export --csv.", page.matrices.more));
  return out + "</div>\n";
}

}  // namespace assay::report
