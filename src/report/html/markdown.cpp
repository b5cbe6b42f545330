// SPDX-License-Identifier: Apache-2.0
// The page boiled down to what fits a ticket.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/decision.hpp"
#include "report/html/markup.hpp"
#include "report/html/page.hpp"
#include "report/layout.hpp"
#include "report/link_ends.hpp"
#include "report/report.hpp"
#include "report/words.hpp"

namespace assay::report {
namespace {

/// Text that Markdown takes for text: its signs escaped, no line breaks, no markup.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += ' ';
      continue;
    }
    if (std::string_view("\\`*_[]<>|#!~&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string nodes_by_state(const PageInput& in) {
  std::map<std::string, std::vector<std::string>> nodes;
  const LinkEnds ends = link_ends(in.results, in.verdict);
  for (const auto& s : in.verdict.entities)
    if (in.judgement.entities.kind(s.entity) == "node")
      nodes[s.state].push_back(in.judgement.entities.name(s.entity));
  std::string out;
  if (ends.links > 0) out += "- " + links_words(ends);
  if (ends.nodes > 0)
    out += fmt::format("; {} node{} FAIL only as their ends", ends.nodes, ends.nodes == 1 ? "" : "s");
  if (ends.links > 0) out += "\n";
  for (const char* state : {"FAIL", "INCONCLUSIVE", "WARN", "NOT_TESTED", "PASS"}) {
    const auto it = nodes.find(state);
    if (it == nodes.end()) continue;
    out += fmt::format("- {} {}", it->second.size(), plain(state));
    if (std::string_view(state) != "PASS") {
      for (std::size_t i = 0; i < std::min<std::size_t>(20, it->second.size()); ++i)
        out += (i == 0 ? ": " : ", ") + plain(it->second[i]);
      if (it->second.size() > 20) out += fmt::format(" and {} more", it->second.size() - 20);
    }
    out += "\n";
  }
  return out;
}

std::string contract_lines(const PageInput& in) {
  const auto rows = verdict::contract_of(in.judgement);
  if (rows.empty()) return "No contract was given.\n";
  std::string out =
      "| met | metric | promised | median | margin | worst part |\n|---|---|---:|---:|---:|---|\n";
  for (const auto& r : rows)
    out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", r.met, plain(r.metric), plain(r.promised),
                       quantity(r.median, r.unit), signed_percent(r.margin), plain(r.worst));
  return out;
}

/// `file`: where the notes are to be read.
std::string finding_lines(const results::VerdictData& v, const std::string& file) {
  std::string out;
  std::size_t notes = 0;
  for (const auto& f : v.findings) {
    if (f.severity == "INFO")
      ++notes;
    else
      out += fmt::format("- **{}** {}{}\n", plain(f.severity), plain(f.text),
                         f.action.empty() ? "" : " \\[" + plain(f.action) + "\\]");
  }
  if (notes == v.findings.size()) out += "None.\n";
  if (notes > 0) out += fmt::format("\n{} note{}: `assay verdict {}`\n", notes, notes == 1 ? "" : "s", file);
  return out;
}

/// Why the run is INCONCLUSIVE, beside its findings.
std::string open_lines(const results::VerdictData& v) {
  constexpr std::size_t most = 20;
  std::set<std::string> told;
  for (const auto& f : v.findings) told.insert(f.text);
  std::string out;
  std::size_t open = 0;
  for (const auto& reason : v.reasons)
    if (!told.contains(reason) && open++ < most) out += "- " + plain(reason) + "\n";
  if (open > most) out += fmt::format("- and {} more\n", open - most);
  return out.empty() ? "" : "\n## Open\n\n" + out;
}

/// Of a directory: the verdict over all runs, and what the rest of the text is about.
std::string joint_lines(const PageInput& in) {
  const auto& joint = *in.joint;
  std::string out = fmt::format(
      "# {}: all runs of {}\n\n- exit code {}\n\n| started | file | state | exit code "
      "|\n|---|---|---|---:|\n",
      plain(joint.verdict.state), plain(joint.name), joint.verdict.exit_code);
  for (const auto& run : joint.runs)
    out += fmt::format("| {} | {} | {} | {} |\n", plain(run.started), plain(run.file), plain(run.state),
                       run.exit_code);
  return out + "\n## Findings of all runs\n\n" + finding_lines(joint.verdict, joint.name) +
         "\n## The newest run\n\n";
}

}  // namespace

std::string page_markdown(const PageInput& in) {
  const auto& v = in.verdict;
  const auto& i = in.results.info;
  const auto& a = v.accounting;
  std::string out = in.joint ? joint_lines(in) : "";
  out += fmt::format("# {}: {}\n\n", plain(v.state), plain(in.file));
  if (in.results.config.contains("simulated"))
    out += "Simulated: synthetic data, no machine was measured.\n\n";
  out += plain(v.state == "PASS" ? pass_words(in.judgement) : decision_words(in.results, v)) + "\n\n";
  const auto& given = in.judgement.options;
  if (const std::string text = unpromised_words(given.limits_name, given.baseline_name); !text.empty())
    out += plain(text) + "\n\n";
  out += fmt::format(
      "- exit code {}, level {}, started {}, assay {}\n- planned {}, passed {}, failed {}, skipped {}, error "
      "{}, incomplete {}\n- values compared with: {}\n",
      v.exit_code, plain(i.level), plain(i.started), plain(i.assay_version), a.planned, a.passed, a.failed,
      a.skipped, a.error, a.incomplete, plain(v.basis));
  if (!in.sha256.empty()) out += "- SHA-256 `" + in.sha256 + "`\n";
  out += "\n## Nodes\n\n" + nodes_by_state(in) + "\n## Contract\n\n" + contract_lines(in) +
         "\n## Findings\n\n" + finding_lines(v, in.file) + open_lines(v);
  return out;
}

}  // namespace assay::report
