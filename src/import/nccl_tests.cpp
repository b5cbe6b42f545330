// SPDX-License-Identifier: Apache-2.0
#include "import/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "import/import.hpp"

namespace assay::imports {
namespace nccl {
namespace {

/// "#  Rank  0 Group  0 Pid   6899 on node01 device  0 [0000:04:00] NVIDIA H100": older versions have no
/// Group.
bool read_device(std::string_view line, RankDevice& out) {
  const auto parts = words(line);
  const auto at = [&](const char* word) { return std::find(parts.begin(), parts.end(), word); };
  const auto on = at("on"), device = at("device");
  if (parts.size() < 4 || parts[0] != "#" || parts[1] != "Rank" || on == parts.end() || device == parts.end())
    return false;
  if (on + 1 == parts.end() || device + 1 == parts.end()) return false;
  out.node = *(on + 1);
  out.device = *(device + 1);
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
  return true;
}

Half read_half(const std::vector<std::string_view>& parts, std::size_t at, bool in_place,
               const TextPosition& place) {
  Half half;
  half.in_place = in_place;
  const auto number = [&](std::size_t i, const char* name) {
    double value = 0;
    if (!parse_number(parts[i], value) || value < 0)
      fail(place, fmt::format("{} '{}' is no number from 0", name, parts[i]));
    return value;
  };
  half.time_s = number(at, "time") * 1e-6;
  half.algbw = number(at + 1, "algbw") * 1e9;
  half.busbw = number(at + 2, "busbw") * 1e9;
  if (parts[at + 3] != "N/A") half.wrong = number(at + 3, "#wrong");
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
    line.halves.push_back(read_half(parts, columns.lead + h * columns.width, h == 1, place));
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

}  // namespace

std::string operation_in(const std::string& text) {
  for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "alltoallv", "alltoall", "broadcast",
                           "sendrecv", "hypercube", "gather", "scatter", "reduce"})
    if (text.find(name) != std::string::npos) return name;
  return "";
}

namespace {

/// "# Out of bounds values : 12 FAILED": how many, 0 of a good run.
double out_of_bounds(std::string_view content) {
  constexpr std::string_view title = "Out of bounds values";
  const auto at = content.find(title);
  if (at == std::string_view::npos || content.find("FAILED") == std::string_view::npos) return 0;
  double values = 0;
  for (const auto& word : words(content.substr(at + title.size())))
    if (parse_number(word, values)) break;
  return std::max(values, 1.0);
}

}  // namespace

Run read_text(const std::string& text, const std::string& file) {
  Run run;
  double wrong = 0;
  run.ended = false;
  Columns columns;
  bool table = false;
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    const std::string_view content = trimmed(line);
    const TextPosition place{file, lines.number()};
    if (content.starts_with('#')) {
      RankDevice device;
      if (read_device(content, device)) run.devices.push_back(std::move(device));
      if (read_columns(content, columns)) table = true;
      if (content.find("Avg bus bandwidth") != std::string_view::npos) run.ended = true;
      wrong = std::max(wrong, out_of_bounds(content));
      if (content.find("Collective test starting:") != std::string_view::npos)
        run.operation = operation_in(std::string(content));
      continue;
    }
    // Launchers and libraries print lines in between: only rows that begin with a size belong to the table.
    const bool row = !content.empty() && content[0] >= '0' && content[0] <= '9' &&
                     words(content).size() >= columns.lead + 4;
    if (table && row) run.lines.push_back(read_line(content, columns, place));
  }
  if (!table)
    fail({file, 0}, "is no output of nccl-tests (no line '# size count type ... time algbw busbw')");
  sharpen(run);
  // The rows that show them may be missing: then the last that is there has them.
  for (const Line& line : run.lines)
    for (const Half& half : line.halves)
      if (half.wrong.value_or(0) > 0) wrong = 0;
  if (wrong > 0 && !run.lines.empty() && !run.lines.back().halves.empty())
    run.lines.back().halves.back().wrong = wrong;
  return run;
}

}  // namespace nccl

namespace {

using nccl::Half;
using nccl::Line;
using nccl::Run;
using results::Better;
using results::Role;

Run read_run(const InputFile& input) {
  const std::string text = read_whole(input);
  const std::filesystem::path& file = input.path();
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string::npos && text[first] == '{';
  Run run = json ? nccl::read_json(text, file.string()) : nccl::read_text(text, file.string());
  if (run.devices.empty()) fail({file.string(), 0}, "lacks the devices ('# Rank 0 ... on NODE device 0')");
  if (run.lines.empty()) fail({file.string(), 0}, "has no results");
  if (run.operation.empty()) run.operation = nccl::operation_in(file.filename().string());
  if (run.operation.empty()) run.operation = "collective";
  return run;
}

/// Samples of one half: the single iterations where they are known, else their mean.
std::vector<Sample> samples_of(const Half& half, bool errors) {
  std::vector<double> times = half.times_s;
  if (times.empty()) times.push_back(half.time_s);
  std::vector<Sample> samples;
  for (const double time : times) {
    const double scale = time > 0 ? half.time_s / time : 1;
    Sample s;
    s.suite = "nccl-tests";
    s.values = {{"busbw", "B/s", Better::higher, Role::metric, half.busbw * scale},
                {"duration", "s", Better::lower, Role::metric, time},
                {"algbw", "B/s", Better::higher, Role::covariate, half.algbw * scale}};
    if (errors) s.values.push_back({"errors", "count", Better::lower, Role::metric, half.wrong.value_or(0)});
    samples.push_back(std::move(s));
  }
  return samples;
}

class NcclImport {
 public:
  void add(const Run& run, int number) {
    std::set<std::string> nodes;
    for (const auto& d : run.devices) nodes.insert(d.node);
    for (const auto& d : run.devices)
      builder_.attribute({d.node, d.device, "", ""}, "model", d.model, run.lines.front().place);
    for (const Line& line : run.lines)
      for (const Half& half : line.halves) add_half(run, line, half, nodes, number);
    if (!run.ended)
      builder_.incomplete(run.lines.front().place.file +
                          ": the end of the output is missing ('# Avg bus bandwidth'): the test was stopped");
  }

  results::Results finish(const std::vector<std::string>& files) {
    // One and the same set of ranks in all files is a world; several sets are groups of it.
    for (const auto& [name, sets] : sets_)
      builder_.set_stage("nccl-tests", name, sets.size() > 1 ? "groups" : "world");
    return builder_.finish(files);
  }

 private:
  void add_half(const Run& run, const Line& line, const Half& half, const std::set<std::string>& nodes,
                int number) {
    const bool one_node = nodes.size() == 1;
    std::string text =
        fmt::format("{}-{}-{}-{}-r{}", run.operation, line.type, line.redop, line.bytes, run.devices.size());
    if (half.in_place) text += "-in";
    const std::string name = Builder::case_name(text);
    // A table of tiny messages rounds to 0.00: nothing was measured there.
    if (!(half.busbw > 0) && !(half.time_s > 0)) return;
    for (Sample& sample : samples_of(half, one_node && half.wrong.has_value())) {
      sample.name = name;
      sample.stage = "node-local";
      sample.place = line.place;
      sample.bytes = line.bytes;
      sample.block = number;
      if (one_node) {
        sample.subject.node = *nodes.begin();
        builder_.add(sample);
        continue;
      }
      for (const auto& d : run.devices) {
        sample.subject = {d.node, d.device, "", ""};
        builder_.add(sample);
      }
    }
    if (one_node) return;
    std::string members;
    for (const auto& d : run.devices) members += d.node + "/" + d.device + " ";
    sets_[name].insert(members);
    if (half.wrong.value_or(0) > 0)
      builder_.fail_case(
          "nccl-tests", name,
          fmt::format("{} wrong values ({}:{})", *half.wrong, line.place.file, line.place.line));
  }

  Builder builder_{"nccl-tests"};
  std::map<std::string, std::set<std::string>> sets_;
};

}  // namespace

results::Results import_nccl_tests(const std::vector<InputFile>& files) {
  NcclImport import;
  std::vector<std::string> names;
  for (const auto& file : files) {
    import.add(read_run(file), static_cast<int>(names.size()));
    names.push_back(file.path().string());
  }
  return import.finish(names);
}

}  // namespace assay::imports
