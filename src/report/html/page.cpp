// SPDX-License-Identifier: Apache-2.0
#include "report/html/page.hpp"

#include <fmt/format.h>

#include <functional>
#include <future>

#include "base/sha256.hpp"
#include "report/html/assets.hpp"
#include "report/html/evidence.hpp"
#include "report/html/markup.hpp"
#include "report/html/sections.hpp"
#include "report/report.hpp"

namespace assay::report {
namespace {

constexpr std::size_t findings_with_samples = 60;

struct Section {
  const char *id, *title, *brief;  ///< `brief` is what the table of contents says
  std::string (*content)(const Page&);
};

constexpr Section sections[] = {
    {"state", "State and signature", "State", cover_section},
    {"contract", "The contract", "Contract", contract_section},
    {"not-tested", "What was not tested, and what could not be seen", "Not tested", untested_section},
    {"fleet", "The fleet", "Fleet", fleet_section},
    {"findings", "Findings", "Findings", findings_section},
    {"pairs", "Pairs and links", "Pairs", matrices_section},
    {"sweeps", "By size", "By size", sweeps_section},
    {"distributions", "Distributions over the fleet", "Distributions", distributions_section},
    {"telemetry", "Clocks, power, temperatures and errors over time", "Telemetry", telemetry_section},
    {"training", "Training", "Training", training_section},
    {"history", "History", "History", history_section},
    {"comparison", "Comparison", "Comparison", comparison_section},
    {"inventory", "Inventory, self-tests and environment", "Inventory", inventory_section},
};

/// JSON inside of a script element: "<" could end it.
std::string data_block(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return "<script type=\"application/json\" id=\"data\">" + out + "</script>\n";
}

/// Nothing is loaded from anywhere, and nothing runs but the one script of this page.
std::string policy() {
  const std::string script =
      page_is_interactive() ? "'sha256-" + sha256_base64(page_script()) + "'" : "'none'";
  return "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-" +
         sha256_base64(page_style()) + "'; script-src " + script;
}

std::string head(const std::string& title) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
             "http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta "
             "name=\"referrer\" content=\"no-referrer\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{} - assay</title>\n<style>",
             policy(), escaped(title)) +
         std::string(page_style()) + "</style>\n</head>\n";
}

std::string tail(const std::string& data, const std::string& words) {
  std::string out = "<footer><p>" + escaped(words) + " The same input gives the same page, byte for byte." +
                    (page_is_interactive() ? "" : " Charts are static: built without the script.") +
                    "</p></footer>\n" + data_block(data);
  if (page_is_interactive()) out += "<script>" + std::string(page_script()) + "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace

bool page_is_interactive() noexcept { return !page_script().empty(); }

std::string page_html(const PageInput& input) {
  // Of a large fleet the longest two, beside the rest.
  auto sensitivity = std::async(std::launch::async, verdict::sensitivity_of, std::cref(input.judgement));
  auto matrices = std::async(std::launch::async, matrices_of, std::cref(input.judgement));
  const Seen seen(input.results);
  Page page{input,
            seen,
            verdict::contract_of(input.judgement),
            {},
            evidence_of(input, seen, findings_with_samples),
            {},
            sweeps_of(input.judgement),
            {},
            spans_of(input.results),
            drawn_parts(input.results),
            coverage_line(input.results)};
  page.sensitivity = sensitivity.get();
  page.matrices = matrices.get();
  for (const Sweep& s : page.sweeps) page.sweep_lines.push_back(sweep_lines_of(page, s));
  std::string out =
      head(input.verdict.state + ": " + input.file) +
      "<body>\n<a class=\"skip\" href=\"#state\">Skip to the state</a>\n<header>\n<div class=\"title\"><h1>" +
      escaped(input.file) + "</h1><p>" +
      escaped(fmt::format("assay {}, level {}, {}", input.results.info.assay_version,
                          input.results.info.level, input.results.info.started)) +
      "</p></div>" + state_chip(input.verdict.state) +
      "\n<div class=\"js\" id=\"controls\"></div>\n</header>\n<nav aria-label=\"Sections\"><ol>";
  for (const Section& s : sections) out += fmt::format("<li><a href=\"#{}\">{}</a></li>", s.id, s.brief);
  out += "</ol></nav>\n<main>\n";
  for (const Section& s : sections)
    out += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n",
                       s.id, s.title) +
           s.content(page) + "</section>\n";
  out += "</main>\n";
  return out + tail(page_data(page), "Made by assay from " + input.file +
                                         (input.sha256.empty() ? "." : ", SHA-256 " + input.sha256 + "."));
}

std::string trend_html(const std::vector<verdict::Snapshot>& runs, const std::string& name) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& r : runs)
    rows.push_back({cell(r.source.started, "nowrap"), cell(r.source.file), cell(r.level),
                    cell(r.injected ? "injected faults" : ""), number_cell(std::to_string(r.series.size())),
                    number_cell(std::to_string(r.parts.size())), cell(r.source.run_id, "dim")});
  return head("Trend of " + name) + "<body>\n<header>\n<div class=\"title\"><h1>Trend of " + escaped(name) +
         "</h1><p>" + std::to_string(runs.size()) +
         " runs</p></div>\n<div class=\"js\" id=\"controls\"></div>\n</header>\n<nav "
         "aria-label=\"Sections\"><ol><li><a href=\"#history\">History</a></li><li><a "
         "href=\"#runs\">Runs</a></li></ol></nav>\n<main>\n"
         "<section id=\"history\" aria-labelledby=\"history-title\"><h2 id=\"history-title\">History</h2>\n" +
         history_of(runs) +
         "</section>\n<section id=\"runs\" aria-labelledby=\"runs-title\"><h2 id=\"runs-title\">Runs</h2>\n" +
         table("Runs by their start",
               {{"started"}, {"file"}, {"level"}, {""}, {"metrics", "num"}, {"parts", "num"}, {"run"}}, rows,
               60) +
         "</section>\n</main>\n" + tail(trend_data(runs), "Made by assay from " + name + ".");
}

}  // namespace assay::report
