// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/hostlist.hpp"
#include "import/builder.hpp"
#include "import/import.hpp"

namespace assay::imports {
namespace {

using results::Better;
using results::Role;

/// What a column means.
struct Column {
  std::string metric, unit;
  double factor = 1;
  Better better = Better::higher;
};

struct Table {
  std::vector<Column> columns;  ///< after the size; those behind them are not read
  bool sized = true;            ///< rows begin with the size of a message; a barrier has none
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
    if (!kind && (word == "Persistent" || word.starts_with("NCCL") || word.starts_with("RCCL"))) continue;
    if ((word.starts_with('v') && word.size() > 1 && word[1] >= '0' && word[1] <= '9') ||
        word.starts_with('('))
      break;
    if (word == "/") continue;
    name.append(name.empty() ? "" : "-").append(word);
  }
  return Builder::case_name(name);
}

/// The header of the table: "# Size      Bandwidth (MB/s)", "# Size  Avg Latency(us)  Min Latency(us) ...",
/// "# Avg Latency(us)". The first column after the size is the result; message rates are the second one.
Table table_of(std::string_view line) {
  const Column rate{"bandwidth", "B/s", 1e6, Better::higher};
  Table table;
  table.sized = holds(line, "Size");
  const std::string_view title = trimmed(line.substr(1));
  if (!table.sized && !title.starts_with("Avg Latency") && !title.starts_with("Overall(us)")) return table;
  if (holds(line, "atency") || holds(line, "Overall(us)"))
    table.columns = {{"latency", "s", 1e-6, Better::lower}};
  else if (holds(line, "Messages/s"))
    table.columns = {rate, {"message-rate", "op/s", 1, Better::higher}};
  else if (holds(line, "MB/s"))
    table.columns = {rate};
  return table;
}

/// What follows `title` in a line, up to a blank or a bracket; empty where it does not have that.
std::string_view said(std::string_view line, std::string_view title) {
  const auto at = line.find(title);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = trimmed(line.substr(at + title.size()));
  return rest.substr(0, rest.find_first_of(" \t])"));
}

/// How a test was run, as its lines before the table say it: "-p15" of 15 pairs, "-d-h" of device and host
/// memory. What is usual adds nothing.
class Setup {
 public:
  void read(std::string_view line) {
    if (auto type = said(line, "# Datatype: "); !type.empty()) {
      if (type.ends_with('.')) type.remove_suffix(1);
      datatype_ = type == "MPI_CHAR" ? "" : part(type);
    }
    if (const auto window = said(line, "# Window creation: "); !window.empty()) window_ = part(window);
    if (const auto sync = said(line, "# Synchronization: "); !sync.empty()) sync_ = part(sync);
    if (const auto pairs = said(line, "[ pairs: "); !pairs.empty()) pairs_ = fmt::format("-p{}", pairs);
    if (const auto size = said(line, "window size: "); !size.empty() && size != "64")
      pairs_ += fmt::format("-w{}", size);
    if (line.starts_with("# Send Buffer on ") || line.starts_with("# Rank 0 Memory on ")) {
      memory_.clear();
      for (const std::string_view word : words(line))
        if (word.size() == 3 && word.starts_with('(') && word.ends_with(')'))
          memory_.append("-").append(word.substr(1, 1));
    }
  }
  std::string name() const { return datatype_ + memory_ + window_ + sync_ + pairs_; }

 private:
  static std::string part(std::string_view text) {
    for (const std::string_view prefix : {"MPI_Win_", "MPI_"})
      if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    return fmt::format("-{}", text);
  }

  std::string datatype_, memory_, window_, sync_, pairs_;
};

/// Names of nodes, each once: separated by blanks, commas or >, or as Slurm writes them, n[01-16].
std::vector<std::string> split_nodes(std::string text, const TextPosition& place) {
  std::replace(text.begin(), text.end(), '>', ',');
  std::vector<std::string> nodes;
  std::set<std::string> known;
  try {
    for (std::string& node : expand_hostlist(text))
      if (known.insert(node).second) nodes.push_back(std::move(node));
  } catch (const Error& e) {
    fail(place, e.what());
  }
  return nodes;
}

/// Where a test ran.
struct Nodes {
  std::vector<std::string> names;
  bool named = true;  ///< else the name of the file stands for them
};

/// NAME@node01,node02.txt names the nodes; else the name itself stands for one.
Nodes nodes_in(const std::filesystem::path& file) {
  std::string stem = file.stem().string();
  const auto at = stem.rfind('@');
  if (at != std::string::npos) {
    Nodes nodes{split_nodes(stem.substr(at + 1), {file.string(), 0}), true};
    if (nodes.names.empty()) fail({file.string(), 0}, "the name of the file names no node after '@'");
    return nodes;
  }
  std::replace_if(
      stem.begin(), stem.end(), [](char c) { return c == ' ' || c == ',' || c == '>'; }, '_');
  return {{stem}, false};
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
      take_label(line);
      const std::string_view content = trimmed(line);
      if (content.starts_with('#'))
        comment(content, {file_, lines.number()});
      else if (!table_.columns.empty() && !content.empty() && content[0] >= '0' && content[0] <= '9')
        row(content, {file_, lines.number()});
    }
    const TextPosition whole{file_, 0};
    if (operation_.empty() && !text.empty())
      fail(whole, "is no output of the OSU benchmarks (no line '# OSU MPI ... Test')");
    if (any_) return;
    if (nodes_.named)
      for (const std::string& node : nodes_.names) builder_.add_part({node, "", "", ""}, whole);
    builder_.add_empty(whole, text.empty() ? "is empty" : "has no results");
  }

 private:
  void comment(std::string_view line, const TextPosition& place) {
    if (line.starts_with("# nodes:")) {
      nodes_ = {split_nodes(std::string(line.substr(8)), place), true};
      if (nodes_.names.empty()) fail(place, "'# nodes:' names none");
    } else if (holds(line, "OSU")) {
      operation_ = operation_of(line, true);
      two_ = between_two(operation_of(line, false));
      table_ = {};
      setup_ = {};
      if (operation_.empty()) fail(place, "lacks the name of the test");
    } else if (Table table = table_of(line); !table.columns.empty()) {
      table_ = std::move(table);
      validated_ = holds(line, "Validation");
    } else {
      setup_.read(line);
    }
  }

  void row(std::string_view line, const TextPosition& place) {
    if (operation_.empty()) fail(place, "results before a line '# OSU MPI ... Test'");
    const auto parts = words(line);
    const std::size_t first = table_.sized ? 1 : 0;
    Sample sample;
    // Other programs print lines in between.
    if (parts.size() < first + table_.columns.size()) return;
    if (std::int64_t bytes = 0; table_.sized) {
      if (!parse_whole(parts[0], bytes)) return;
      sample.bytes = bytes;
    }
    sample.suite = "osu";
    sample.name = name_of(sample.bytes);
    sample.block = number_;
    sample.place = place;
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      const Column& column = table_.columns[i];
      double value = 0;
      if (!parse_number(parts[first + i], value) || value < 0)
        fail(place, fmt::format("{} '{}' is no number from 0", column.metric, parts[first + i]));
      sample.values.push_back(
          {column.metric, column.unit, column.better, Role::metric, value * column.factor});
    }
    any_ = true;
    add(sample);
    if (validated_ && std::ranges::find(parts, "Fail") != parts.end())
      builder_.fail_case(sample.suite, sample.name,
                         fmt::format("the validation failed ({}:{})", place.file, place.line));
    if (!table_.sized) table_ = {};  // of one row
  }

  bool link() const { return nodes_.names.size() == 2 && two_; }

  /// Tests on different numbers of nodes are different cases.
  std::string name_of(std::optional<std::int64_t> bytes) const {
    std::string text = operation_ + setup_.name();
    if (bytes) text += fmt::format("-{}", *bytes);
    if (nodes_.named && !link()) text += fmt::format("-n{}", nodes_.names.size());
    return Builder::case_name(text);
  }

  void add(Sample& sample) {
    const auto& nodes = nodes_.names;
    sample.stage = link() ? "pairs" : nodes.size() > 1 ? "groups" : "node-local";
    if (link()) {
      sample.subject = {nodes[0], "", nodes[1], ""};
      builder_.add(sample);
      return;
    }
    for (const std::string& node : nodes) {
      sample.subject = {node, "", "", ""};
      builder_.add(sample);
    }
  }

  Builder& builder_;
  std::string file_;
  int number_;
  Nodes nodes_;
  std::string operation_;
  bool two_ = false;  ///< the test is between two ranks
  Setup setup_;
  Table table_;
  bool validated_ = false;  ///< a column says whether the data were right
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
