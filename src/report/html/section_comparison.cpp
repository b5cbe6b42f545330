// SPDX-License-Identifier: Apache-2.0
// Two runs or sets of runs against each other, and the runs of a directory together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/statistics.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/html/svg.hpp"

namespace assay::report {
namespace {

using verdict::MetricComparison;

std::string names_of(const std::vector<verdict::RunSource>& runs) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, runs.size()); ++i)
    text += (i == 0 ? "" : ", ") + runs[i].file;
  return runs.size() > 3 ? text + fmt::format(" and {} more", runs.size() - 3) : text;
}

/// One scale for all metrics: 0.9 to 1.1, wider where more is needed.
Scale ratio_scale(const verdict::CompareResult& c) {
  double widest = std::log(1.1);
  const auto take = [&](double ratio) {
    if (std::isfinite(ratio) && ratio > 0) widest = std::max(widest, std::abs(std::log(ratio)));
  };
  for (const auto& m : c.metrics) {
    for (const double r : {m.ratio.estimate, m.ratio.low, m.ratio.high}) take(r);
    for (const auto& u : m.units) take(u.ratio);
  }
  widest = std::min(widest, std::log(2.0));
  return {std::exp(-widest), std::exp(widest), 6, 194, true};
}

/// The ratio with its interval; below it a dot for every node that is in both.
std::string ratio_picture(const MetricComparison& m, const Scale& x, const std::string& span) {
  if (std::isnan(m.ratio.estimate)) return "-";
  std::string picture = svg_line(x.at(1), 0, x.at(1), 30, "bound");
  std::vector<double> units;
  for (const auto& u : m.units) units.push_back(u.ratio);
  for (const double r : thinned(units, 60)) picture += svg_dot(x.at(r), 23, 2, "dot peer");
  if (std::isfinite(m.ratio.low) && std::isfinite(m.ratio.high))
    picture += svg_line(x.at(m.ratio.low), 9, x.at(m.ratio.high), 9, "line");
  picture += svg_dot(x.at(m.ratio.estimate), 9, 3.5, "dot own");
  return svg(200, 30, picture, "ratio of " + m.full() + " with its interval and node by node, " + span,
             "plot spark");
}

std::string metric_table(const Page& page) {
  const auto& c = *page.in.comparison;
  const Scale x = ratio_scale(c);
  const std::string span = fmt::format("{:.2g} to {:.2g}", x.low, x.high);
  std::vector<std::vector<Cell>> rows;
  for (const auto& m : c.metrics)
    rows.push_back(
        {markup_cell(state_chip(verdict::to_string(m.relation)), "nowrap"), cell(m.full(), "wide"),
         number_cell(quantity(m.a.median, m.unit)), number_cell(quantity(m.b.median, m.unit)),
         number_cell(std::isnan(m.ratio.estimate) ? "-" : fmt::format("{:.4f}", m.ratio.estimate)),
         number_cell(std::isfinite(m.ratio.low) ? fmt::format("{:.4f} to {:.4f}", m.ratio.low, m.ratio.high)
                                                : "-"),
         markup_cell(ratio_picture(m, x, span)), number_cell(fmt::format("{} / {}", m.a.units, m.b.units)),
         markup_cell(m.b.worst_name.empty() ? "-" : part_link(m.b.worst_name)), cell(m.note, "dim")});
  if (rows.empty()) return none("The two have no metric in common.");
  const std::string level = fmt::format("{:.3g} % interval", 100 * (1 - page.in.compare_options.alpha));
  return table("B against A, metric by metric",
               {{"relation"},
                {"metric", "wide"},
                {"A", "num"},
                {"B", "num"},
                {"ratio", "num"},
                {level.c_str(), "num"},
                {span.c_str()},
                {"units", "num"},
                {"worst in B"},
                {"note"}},
               rows, 60);
}

struct NodeRatios {
  std::vector<double> ratios;
  std::string slowest, fastest;
  double least = HUGE_VAL, most = 0;
};

std::string node_table(const verdict::CompareResult& c) {
  std::map<std::string, NodeRatios> nodes;
  for (const auto& m : c.metrics) {
    if (m.relation == verdict::Relation::incomparable) continue;
    for (const auto& u : m.units) {
      NodeRatios& n = nodes[u.name];
      n.ratios.push_back(u.ratio);
      if (u.ratio < n.least) n.least = u.ratio, n.slowest = m.full();
      if (u.ratio > n.most) n.most = u.ratio, n.fastest = m.full();
    }
  }
  if (nodes.empty())
    return none(c.nodes_common == 0
                    ? "Node by node: no node is in both, so that only the fleets can be compared."
                    : "Node by node: no comparable metric has one value for each node.");
  std::vector<std::pair<const std::string*, const NodeRatios*>> order;
  for (const auto& [name, n] : nodes) order.emplace_back(&name, &n);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second->least < b.second->least; });
  std::vector<std::vector<Cell>> rows;
  for (const auto& [name, n] : order)
    rows.push_back({markup_cell(part_link(*name)), number_cell(std::to_string(n->ratios.size())),
                    number_cell(fmt::format("{:.4f}", median(n->ratios))),
                    number_cell(fmt::format("{:.4f}", n->least)), cell(n->slowest, "wide"),
                    number_cell(fmt::format("{:.4f}", n->most)), cell(n->fastest, "wide")});
  return "<h3>Node by node</h3>\n<p>Ratios of the nodes that are in both, over their metrics; the one that "
         "lost most first.</p>\n" +
         table("B against A, node by node",
               {{"node"},
                {"metrics", "num"},
                {"median ratio", "num"},
                {"least", "num"},
                {"in", "wide"},
                {"largest", "num"},
                {"in", "wide"}},
               rows, 24);
}

}  // namespace

std::string comparison_section(const Page& page) {
  if (!page.in.comparison)
    return none("One run was given: give two, or two sets, to compare them (assay report A.h5 B.h5).");
  const auto& c = *page.in.comparison;
  std::string out = fmt::format(
      "<p>{} A: {}. B: {}. {} nodes in A, {} in B, {} in both. A ratio above 1 means that B is faster; a "
      "change within {:.3g} % is none.</p>\n",
      state_chip(verdict::to_string(c.relation)), escaped(names_of(c.a)), escaped(names_of(c.b)), c.nodes_a,
      c.nodes_b, c.nodes_common, 100 * page.in.compare_options.margin);
  for (const auto& note : c.notes) out += "<p class=\"nothing\">" + escaped(note) + "</p>\n";
  return out + metric_table(page) + node_table(c) + "<div class=\"js tools\" id=\"comparison-csv\"></div>\n";
}

std::string joint_block(const Page& page) {
  if (!page.in.joint) return "";
  const auto& joint = *page.in.joint;
  std::vector<std::vector<Cell>> rows;
  for (const auto& run : joint.runs)
    rows.push_back({cell(run.started, "nowrap"), cell(run.file), markup_cell(state_chip(run.state), "nowrap"),
                    number_cell(std::to_string(run.exit_code)), cell(run.level),
                    number_cell(std::to_string(run.fails)), number_cell(std::to_string(run.warnings))});
  std::ranges::reverse(rows);
  std::string out =
      fmt::format(
          "<h3>All runs of {} together</h3>\n<div id=\"joint\" class=\"banner small {}\"><p "
          "class=\"state\">{}</p><p>{} judged one by one and together; this page shows the newest, {}.</p><p "
          "class=\"exit\">exit code {}</p></div>\n",
          escaped(joint.name), state_class(joint.verdict.state), escaped(joint.verdict.state),
          joint.runs.size() == 1 ? "1 run" : fmt::format("{} runs", joint.runs.size()), escaped(page.in.file),
          joint.verdict.exit_code) +
      table("Runs, the newest first",
            {{"started"}, {"file"}, {"state"}, {"exit", "num"}, {"level"}, {"FAIL", "num"}, {"WARN", "num"}},
            rows, 8);
  std::vector<std::vector<Cell>> findings;
  for (const auto& f : joint.verdict.findings)
    if (f.severity != "INFO")
      findings.push_back({markup_cell(state_chip(f.severity), "nowrap"), markup_cell(part_link(f.name)),
                          cell(f.text, "wide")});
  return findings.empty() ? out + "<p>No run found a fault or a warning.</p>\n"
                          : out + table("Findings of all runs, each once",
                                        {{"severity"}, {"part"}, {"what", "wide"}}, findings, 8);
}

}  // namespace assay::report
