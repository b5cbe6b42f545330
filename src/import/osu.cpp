// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "import/builder.hpp"
#include "import/import.hpp"

namespace assay::imports {
namespace {

using results::Better;
using results::Role;

/// What the columns after the size mean.
struct Column {
  std::string metric, unit;
  double factor = 1;
  Better better = Better::higher;
};

/// "# OSU MPI Bi-Directional Bandwidth Test v5.6.2" -> "bi-directional-bandwidth". "# OSU MPI_Put Latency
/// Test" is "put-latency", without `kind` "latency"; likewise MPI-MEMORY, the memory of a device.
std::string operation_of(std::string_view line, bool kind) {
  std::string name;
  for (std::string_view word : words(line)) {
    if (word == "#" || word == "OSU" || word == "MPI" || word == "Test" || word == "Benchmark") continue;
    if (word.starts_with("MPI_") || word.starts_with("MPI-")) {
      if (!kind) continue;
      word.remove_prefix(4);
    }
    if ((word.starts_with('v') && word.size() > 1 && word[1] >= '0' && word[1] <= '9') ||
        word.starts_with('('))
      break;
    if (word == "/") continue;
    name.append(name.empty() ? "" : "-").append(word);
  }
  return Builder::case_name(name);
}

/// The header of the table: "# Size      Bandwidth (MB/s)", "# Size  Avg Latency(us)  Min Latency(us) ...".
/// The first column after the size is the result; message rates are the second one.
std::vector<Column> columns_of(std::string_view line) {
  if (!holds(line, "Size")) return {};
  if (holds(line, "atency")) return {{"latency", "s", 1e-6, Better::lower}};
  if (holds(line, "Messages/s"))
    return {{"bandwidth", "B/s", 1e6, Better::higher}, {"message-rate", "op/s", 1, Better::higher}};
  if (holds(line, "MB/s")) return {{"bandwidth", "B/s", 1e6, Better::higher}};
  return {};
}

std::vector<std::string> split_nodes(std::string_view text) {
  std::vector<std::string> nodes(1);
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == ',' || c == '>')
      nodes.emplace_back();
    else
      nodes.back() += c;
  }
  std::erase(nodes, "");
  return nodes;
}

/// NAME@node01,node02.txt names the nodes; else the name itself stands for one.
std::vector<std::string> nodes_in(const std::filesystem::path& file) {
  std::string stem = file.stem().string();
  const auto at = stem.rfind('@');
  if (at != std::string::npos) return split_nodes(stem.substr(at + 1));
  std::replace_if(
      stem.begin(), stem.end(), [](char c) { return c == ' ' || c == ',' || c == '>'; }, '_');
  return {stem};
}

/// Whether a test is one of two ranks; its operation without the kind.
bool between_two(const std::string& operation) {
  static const std::set<std::string> tests = {"latency",
                                              "bandwidth",
                                              "bi-directional-bandwidth",
                                              "multiple-bandwidth-message-rate",
                                              "multi-latency",
                                              "multi-threaded-latency",
                                              "multi-process-latency"};
  return tests.contains(operation);
}

class OsuFile {
 public:
  OsuFile(Builder& builder, const std::filesystem::path& file, int number)
      : builder_(builder), file_(file.string()), number_(number), nodes_(nodes_in(file)) {}

  void read(const std::string& text) {
    Lines lines(text);
    for (std::string_view line; lines.next(line);) {
      const std::string_view content = trimmed(line);
      if (content.starts_with('#'))
        comment(content, {file_, lines.number()});
      else if (!columns_.empty() && !content.empty() && content[0] >= '0' && content[0] <= '9')
        row(content, {file_, lines.number()});
    }
    if (operation_.empty())
      fail({file_, 0}, "is no output of the OSU benchmarks (no line '# OSU MPI ... Test')");
    if (!any_) fail({file_, 0}, "has no results");
  }

 private:
  void comment(std::string_view line, const TextPosition& place) {
    if (line.starts_with("# nodes:")) {
      nodes_ = split_nodes(line.substr(8));
      if (nodes_.empty()) fail(place, "'# nodes:' names none");
    } else if (holds(line, "OSU")) {
      operation_ = operation_of(line, true);
      two_ = between_two(operation_of(line, false));
      columns_.clear();
      if (operation_.empty()) fail(place, "lacks the name of the test");
    } else if (auto columns = columns_of(line); !columns.empty()) {
      columns_ = std::move(columns);
      validated_ = holds(line, "Validation");
    }
  }

  void row(std::string_view line, const TextPosition& place) {
    if (operation_.empty()) fail(place, "results before a line '# OSU MPI ... Test'");
    const auto parts = words(line);
    std::int64_t bytes = 0;
    // Other programs print lines in between.
    if (parts.size() < 1 + columns_.size() || !parse_whole(parts[0], bytes)) return;
    Sample sample;
    sample.suite = "osu";
    sample.name = Builder::case_name(fmt::format("{}-{}", operation_, bytes));
    sample.bytes = bytes;
    sample.block = number_;
    sample.place = place;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      double value = 0;
      if (!parse_number(parts[1 + i], value) || value < 0)
        fail(place, fmt::format("{} '{}' is no number from 0", columns_[i].metric, parts[1 + i]));
      sample.values.push_back({columns_[i].metric, columns_[i].unit, columns_[i].better, Role::metric,
                               value * columns_[i].factor});
    }
    any_ = true;
    add(sample);
    if (validated_ && parts.back() == "Fail")
      builder_.fail_case(sample.suite, sample.name,
                         fmt::format("the validation failed ({}:{})", place.file, place.line));
  }

  void add(Sample& sample) {
    const bool link = nodes_.size() == 2 && two_;
    sample.stage = link ? "pairs" : nodes_.size() > 1 ? "groups" : "node-local";
    if (link) {
      sample.subject = {nodes_[0], "", nodes_[1], ""};
      builder_.add(sample);
      return;
    }
    for (const std::string& node : nodes_) {
      sample.subject = {node, "", "", ""};
      builder_.add(sample);
    }
  }

  Builder& builder_;
  std::string file_;
  int number_;
  std::vector<std::string> nodes_;
  std::string operation_;
  bool two_ = false;  ///< the test is between two ranks
  std::vector<Column> columns_;
  bool validated_ = false;  ///< the last column says whether the data were right
  bool any_ = false;
};

}  // namespace

results::Results import_osu(const std::vector<InputFile>& files) {
  Builder builder("osu");
  std::vector<std::string> names;
  for (const auto& file : files) {
    OsuFile(builder, file.path(), static_cast<int>(names.size())).read(read_whole(file));
    names.push_back(file.path().string());
  }
  return builder.finish(names);
}

}  // namespace assay::imports
