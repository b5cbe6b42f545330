// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <streambuf>

#include "base/error.hpp"
#include "report/html/page.hpp"
#include "report/report.hpp"
#include "results/export.hpp"
#include "results/reader.hpp"
#include "results/schema.hpp"
#include "tests/fuzz/targets.hpp"
#include "verdict/join.hpp"
#include "verdict/verdict.hpp"

namespace assay::fuzz {
namespace {

namespace fs = std::filesystem;

class Nowhere : public std::streambuf {
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
  std::streamsize xsputn(const char*, std::streamsize n) override { return n; }
};

struct Directory {
  Directory() {
    std::error_code code;
    const char* parent = fs::is_directory("/dev/shm", code) ? "/dev/shm" : "/tmp";
    path = std::string(parent) + "/assay-fuzz-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) broken("no scratch directory");
  }
  ~Directory() {
    std::error_code code;
    fs::remove_all(path, code);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path;
};

void report_all(const results::Results& r, const results::VerdictData& v) {
  const report::Style style{80, false};
  report::inspect_text(r, "file.h5", style);
  report::summary(r, v, "file.h5", style);
  report::verdict_text(v, style);
  report::table_text(r, v, {40, true});
  report::verdict_json(r, v);
  report::verdict_junit(r, v);
  report::nodes_text(r, v);
}

/// No text of a file is markup in the page: every tag begins with a name that the page has, and none of them
/// can load or run anything.
void check_page(const report::PageInput& input) {
  const std::string page = report::page_html(input), body = page.substr(0, page.find("<script type"));
  for (const char* tag : {"<img", "<script", "<iframe", "<object", "<embed", "<link", "<form", "<base"})
    if (const auto at = body.find(tag); at != std::string::npos) broken("in a page: " + body.substr(at, 80));
  const std::string data = page.substr(body.size(), page.find("</script>", body.size()) - body.size());
  if (data.find('<', 1) != std::string::npos) broken("markup in the data of a page");
  report::page_markdown(input);
}

}  // namespace

void broken(const std::string& what) {
  std::fprintf(stderr, "broken: %s\n", what.c_str());
  std::abort();
}

const std::string& scratch_directory() {
  static const Directory directory;
  return directory.path;
}

void use_results(const std::string& path) {
  results::load(path);  // in a process of its own first: HDF5 itself may crash on what is not sealed
  use_results(std::filesystem::is_directory(path) ? results::load_own_partial(path)
                                                  : results::load_own(std::filesystem::path(path)));
}

void use_results(const results::Results& r) {
  Nowhere nowhere;
  std::ostream out(&nowhere);
  results::export_csv(r, out);
  results::export_jsonl(r, out);
  if (r.verdict) report_all(r, *r.verdict);
  const auto options = verdict::options_from(r);
  verdict::Judgement judgement(r, options);
  const auto verdict = verdict::judge_all(judgement);
  report_all(r, verdict);
  check_page({"file.h5", "", r, judgement, verdict, {}, std::nullopt, std::nullopt, {}, nullptr});
  verdict::Join join;
  join.add("a.h5", r, verdict);
  join.add("b.h5", r, verdict);
  report_all(join.results(), join.verdict(false));
}

const std::vector<std::pair<std::string, Target>>& targets() {
  static const std::vector<std::pair<std::string, Target>> all{
      {"config", config},     {"limits", limits},           {"values", values}, {"bytes", bytes},
      {"edits", edits},       {"partial", partial},         {"inject", inject}, {"topology", topology},
      {"simulate", simulate}, {"import_file", import_file},
  };
  return all;
}

}  // namespace assay::fuzz
