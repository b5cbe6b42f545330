// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "import/nccl_tests.hpp"

namespace assay::imports::nccl {
namespace {

/// "#  Rank  0 Group  0 Pid   6899 on node01 device  0 [0000:04:00] NVIDIA H100": older versions have no
/// Group.
bool read_device(std::string_view line, RankDevice& out) {
  const auto parts = words(line);
  const auto at = [&](const char* word) { return std::find(parts.begin(), parts.end(), word); };
  const auto on = at("on"), device = at("device"), group = at("Group");
  if (parts.size() < 4 || parts[0] != "#" || parts[1] != "Rank" || on == parts.end() || device == parts.end())
    return false;
  if (on + 1 == parts.end() || device + 1 == parts.end()) return false;
  out.node = *(on + 1);
  out.device = *(device + 1);
  if (group != parts.end() && group + 1 != parts.end()) parse_whole(*(group + 1), out.group);
  const auto bracket = line.find(']');
  out.model = bracket == std::string_view::npos ? "" : std::string(trimmed(line.substr(bracket + 1)));
  return true;
}

/// The columns that a half of the table has, from its header: what stands between the first `time` and the
/// second.
struct Columns {
  std::size_t lead = 5;   ///< size count type redop root
  std::size_t width = 4;  ///< time algbw busbw #wrong and whatever follows
  bool in_place = true;   ///< a second half follows
  /// `error` of versions before 2.13 is the largest deviation, which rounding leaves above 0: their last line
  /// tells how many values are out of bounds.
  bool counts_wrong = true;
  bool cpu_time = false;  ///< until the call returned
};

bool read_columns(std::string_view line, Columns& out) {
  const auto parts = words(line);
  std::vector<std::size_t> times;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i] == "time" || parts[i] == "cputime") times.push_back(i);
  if (parts.size() < 5 || parts[0] != "#" || parts[1] != "size" || times.empty()) return false;
  out.lead = times[0] - 1;
  out.in_place = times.size() > 1;
  out.width = (out.in_place ? times[1] : parts.size()) - times[0];
  out.cpu_time = parts[times[0]] == "cputime";
  out.counts_wrong = times[0] + 3 < parts.size() && parts[times[0] + 3] == "#wrong";
  return true;
}

Half read_half(const std::vector<std::string_view>& parts, std::size_t at, const Columns& columns,
               const TextPosition& place) {
  Half half;
  half.in_place = at > columns.lead;
  const auto number = [&](std::size_t i, const char* name) {
    double value = 0;
    if (!parse_number(parts[i], value) || value < 0)
      fail(place, fmt::format("{} '{}' is no number from 0", name, parts[i]));
    return value;
  };
  half.time_s = number(at, "time") * 1e-6;
  half.algbw = number(at + 1, "algbw") * 1e9;
  half.busbw = number(at + 2, "busbw") * 1e9;
  half.checked = parts[at + 3] != "N/A";
  if (columns.counts_wrong && half.checked) half.wrong = number(at + 3, "#wrong");
  return half;
}

Line read_line(std::string_view text, const Columns& columns, const TextPosition& place) {
  const auto parts = words(text);
  Line line;
  line.place = place;
  if (!parse_whole(parts[0], line.bytes) || line.bytes < 0)
    fail(place, fmt::format("size '{}' is no whole number", parts[0]));
  const std::size_t halves = columns.in_place ? 2 : 1;
  if (columns.width < 4 || parts.size() < columns.lead + halves * columns.width)
    fail(place, fmt::format("{} columns where the header has {}", parts.size(),
                            columns.lead + halves * columns.width));
  // Reduction and root are not columns of every collective's older tables.
  if (columns.lead > 2) line.type = parts[2];
  if (columns.lead > 3) line.redop = parts[3];
  for (std::size_t h = 0; h < halves; ++h)
    line.halves.push_back(read_half(parts, columns.lead + h * columns.width, columns, place));
  return line;
}

/// The table prints rates with two decimals, which leaves nothing of small messages: below 10 GB/s they are
/// computed from size and time again, with the ratio of bus to algorithm bandwidth of the largest message.
/// Only where that largest one shows that its rate is size over time.
void sharpen(Run& run) {
  const Line* largest = nullptr;
  for (const Line& line : run.lines)
    if (largest == nullptr || line.bytes > largest->bytes) largest = &line;
  if (largest == nullptr) return;
  const Half& best = largest->halves.front();
  const double rate = static_cast<double>(largest->bytes) / best.time_s;
  if (!(best.algbw > 1e9) || !(std::abs(rate / best.algbw - 1) < 0.02)) return;
  const double ratio = best.busbw / best.algbw;
  for (Line& line : run.lines)
    for (Half& half : line.halves)
      if (half.algbw < 1e10 && half.time_s > 0) {
        half.algbw = static_cast<double>(line.bytes) / half.time_s;
        half.busbw = half.algbw * ratio;
      }
}

/// "# Out of bounds values : 12 FAILED": how many, 0 of a good run; nothing of another line.
std::optional<double> out_of_bounds(std::string_view content) {
  constexpr std::string_view title = "Out of bounds values";
  const auto at = content.find(title);
  if (at == std::string_view::npos) return std::nullopt;
  if (!holds(content, "FAILED")) return 0;
  double values = 0;
  for (const auto& word : words(content.substr(at + title.size())))
    if (parse_number(word, values)) break;
  return std::max(values, 1.0);
}

/// What the first lines of a run say, whatever the version.
bool is_header(std::string_view content) {
  return content.starts_with('#') &&
         (holds(content, "nThread ") || holds(content, "Using devices") ||
          holds(content, "Collective test starting:") || holds(content, "nccl-tests version"));
}

/// "# nThread 1 ... graph: 4": how often a captured graph was launched, 0 where none was.
std::int64_t graph_of(std::string_view content) {
  const auto parts = words(content);
  const auto at = std::find(parts.begin(), parts.end(), "graph:");
  std::int64_t launches = 0;
  if (at == parts.end() || at + 1 == parts.end() || !parse_whole(*(at + 1), launches)) return 0;
  return launches;
}

struct TextLine {
  std::size_t number;
  std::string_view content;
};

/// The lines without labels of tasks. Tasks that all have a header of their own are runs of their own, one
/// after the other here.
std::vector<TextLine> lines_of(const std::string& text) {
  std::map<std::int64_t, std::vector<TextLine>> tasks;
  std::set<std::int64_t> headed;
  std::vector<TextLine> all;
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    const auto task = take_label(line);
    all.push_back({lines.number(), trimmed(line)});
    tasks[task].push_back(all.back());
    if (is_header(all.back().content) && holds(all.back().content, "Using devices")) headed.insert(task);
  }
  if (headed.size() < 2) return all;
  all.clear();
  for (const auto& [task, of] : tasks)
    if (headed.contains(task)) all.insert(all.end(), of.begin(), of.end());
  return all;
}

/// Reads the runs of one text.
class TextReader {
 public:
  explicit TextReader(const std::string& file) : file_(file) {}

  void line(const TextLine& line) {
    const std::string_view content = line.content;
    const TextPosition place{file_, line.number};
    if (content.starts_with('#')) {
      const bool options = is_header(content) && holds(content, "nThread ");
      if (is_header(content) && (!run_.devices.empty() || !run_.lines.empty() || (options && options_)))
        close();
      options_ = options_ || options;
      if (run_.place.line == 0) run_.place = place;
      comment(content);
      return;
    }
    // Launchers and libraries print lines in between: only rows that begin with a size belong to the table.
    const bool row = !content.empty() && content[0] >= '0' && content[0] <= '9' &&
                     words(content).size() >= columns_.lead + 4;
    if (table_ && row) run_.lines.push_back(read_line(content, columns_, place));
  }

  std::vector<Run> finish() {
    close();
    if (!any_header_)
      fail({file_, 0}, "is no output of nccl-tests (no line '# size count type ... time algbw busbw')");
    return std::move(runs_);
  }

 private:
  void comment(std::string_view content) {
    RankDevice device;
    if (read_device(content, device)) run_.devices.push_back(std::move(device));
    if (is_header(content)) any_header_ = true;
    if (read_columns(content, columns_)) {
      any_header_ = table_ = true;
      run_.cpu_time = columns_.cpu_time;
    }
    if (graph_of(content) > 0) run_.graph = true;
    if (holds(content, "Avg bus bandwidth")) run_.ended = true;
    if (const auto wrong = out_of_bounds(content))
      run_.out_of_bounds = std::max(run_.out_of_bounds.value_or(0), *wrong);
    if (holds(content, "Collective test starting:")) run_.operation = operation_in(std::string(content));
  }

  void close() {
    sharpen(run_);
    runs_.push_back(std::move(run_));
    run_ = fresh();
    table_ = options_ = false;
  }

  static Run fresh() {
    Run run;
    run.ended = false;
    return run;
  }

  std::string file_;
  std::vector<Run> runs_;
  Run run_ = fresh();
  Columns columns_;
  bool options_ = false;  ///< of this run were printed
  bool table_ = false, any_header_ = false;
};

}  // namespace

std::string operation_in(const std::string& text) {
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "alltoallv", "alltoall", "broadcast",
                           "sendrecv", "hypercube", "gather", "scatter", "reduce"})
    if (text.find(name) != std::string::npos) return name;
  return "";
}

std::vector<Run> read_text(const std::string& text, const std::string& file) {
  TextReader reader(file);
  for (const TextLine& line : lines_of(text)) reader.line(line);
  return reader.finish();
}

}  // namespace assay::imports::nccl
