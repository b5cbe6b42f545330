// SPDX-License-Identifier: Apache-2.0
#include "import/nccl_tests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "import/import.hpp"

namespace assay::imports {

namespace {

using nccl::Half;
using nccl::Line;
using nccl::Run;
using results::Better;
using results::Role;

/// A table of tiny messages rounds to 0.00: nothing was measured there.
bool measured(const Half& half) { return half.busbw > 0 || half.time_s > 0 || half.wrong.value_or(0) > 0; }

/// The end of an output counts what its rows may not: where they show no wrong values, the last that was
/// checked has them. Versions that print a deviation have no count in the rows of a good run.
void settle_wrong(Run& run) {
  if (!run.out_of_bounds) return;
  Half* last = nullptr;
  for (Line& line : run.lines)
    for (Half& half : line.halves) {
      if (half.wrong.value_or(0) > 0) return;
      if (half.checked && *run.out_of_bounds == 0) half.wrong = 0;
      if (measured(half) && (last == nullptr || half.checked || !last->checked)) last = &half;
    }
  if (*run.out_of_bounds > 0 && last != nullptr) last->wrong = run.out_of_bounds;
}

constexpr const char* lacks_devices = "lacks the devices ('# Rank 0 ... on NODE device 0')";

void check(Run& run, const std::filesystem::path& file) {
  if (run.devices.empty()) fail(run.place, lacks_devices);
  if (run.operation.empty()) run.operation = nccl::operation_in(file.filename().string());
  if (run.operation.empty()) run.operation = "collective";
  settle_wrong(run);
}

/// The runs of a file, one or several; none where it is empty.
std::vector<Run> read_runs(const InputFile& input) {
  const std::string text = read_whole(input);
  const std::filesystem::path& file = input.path();
  const auto first = text.find_first_not_of(" \t\r\n");
  std::vector<Run> runs;
  if (first == std::string::npos) return runs;
  if (text[first] == '{')
    runs.push_back(nccl::read_json(text, file.string()));
  else
    runs = nccl::read_text(text, file.string());
  if (runs.size() == 1) runs.front().place = {file.string(), 0};
  // One that stopped before its first row hides no other.
  for (Run& run : runs)
    if (!run.lines.empty()) check(run, file);
  return runs;
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
    // They are of all iterations together.
    const double wrong = samples.empty() ? half.wrong.value_or(results::not_taken) : 0;
    if (errors) s.values.push_back({"errors", "count", Better::lower, Role::metric, wrong});
    samples.push_back(std::move(s));
  }
  return samples;
}

std::set<std::string> nodes_of(const Run& run) {
  std::set<std::string> nodes;
  for (const auto& d : run.devices) nodes.insert(d.node);
  return nodes;
}

/// What is not alike is no sample of the same case.
std::string case_of(const Run& run, const Line& line, const Half& half) {
  std::set<std::int64_t> groups;
  for (const auto& d : run.devices) groups.insert(d.group);
  std::string text =
      fmt::format("{}-{}-{}-{}-r{}", run.operation, line.type, line.redop, line.bytes, run.devices.size());
  if (const auto nodes = nodes_of(run).size(); nodes > 1) text += fmt::format("-n{}", nodes);
  if (groups.size() > 1) text += fmt::format("-g{}", groups.size());
  if (run.graph) text += "-graph";
  if (run.cpu_time) text += "-cpu";
  return Builder::case_name(text + (half.in_place ? "-in" : ""));
}

class NcclImport {
 public:
  /// `runs` are all that there will be.
  explicit NcclImport(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
      const bool one_node = nodes_of(run).size() < 2;
      for (const Line& line : run.lines)
        for (const Half& half : line.halves) {
          if (one_node && half.wrong) counted_.insert(case_of(run, line, half));
          if (!one_node && measured(half)) groups_[case_of(run, line, half)].try_emplace(members_of(run), 0);
        }
    }
    for (auto& [name, groups] : groups_) {
      double number = 0;
      for (auto& [members, group] : groups) group = number++;
    }
  }

  void add_empty(const InputFile& file) { builder_.add_empty({file.path().string(), 0}, "is empty"); }

  void add(const Run& run, int number) {
    for (const auto& d : run.devices) builder_.add_part({d.node, d.device, "", ""}, run.place);
    if (run.cut) return builder_.add_empty(run.place, "ends in the middle of its JSON");
    if (run.lines.empty())
      return builder_.add_empty(run.place, run.devices.empty() ? lacks_devices : "has no results");
    const auto nodes = nodes_of(run);
    for (const auto& d : run.devices)
      builder_.attribute({d.node, d.device, "", ""}, "model", d.model, run.lines.front().place);
    for (const Line& line : run.lines)
      for (const Half& half : line.halves) add_half(run, line, half, nodes, number);
    if (!run.ended)
      builder_.incomplete(run.lines.front().place.file +
                          ": the end of the output is missing ('# Avg bus bandwidth'): the test was stopped");
  }

  results::Results finish(const std::vector<std::string>& files) {
    // One and the same set of ranks in all runs is a world; several sets are groups of it.
    for (const auto& [name, groups] : groups_)
      builder_.set_stage("nccl-tests", name, groups.size() > 1 ? "groups" : "world");
    return builder_.finish(files);
  }

 private:
  void add_half(const Run& run, const Line& line, const Half& half, const std::set<std::string>& nodes,
                int number) {
    const bool one_node = nodes.size() == 1;
    if (!measured(half)) return;
    const std::string name = case_of(run, line, half);
    for (Sample& sample : samples_of(half, one_node && counted_.contains(name))) {
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
      // The same ranks are the same group, however often they ran.
      if (const auto& groups = groups_.at(name); groups.size() > 1)
        sample.values.push_back(
            {"group", "count", Better::none, Role::covariate, groups.at(members_of(run))});
      for (const auto& d : run.devices) {
        sample.subject = {d.node, d.device, "", ""};
        builder_.add(sample);
      }
    }
    if (one_node) return;
    if (half.wrong.value_or(0) > 0)
      builder_.fail_case(
          "nccl-tests", name,
          fmt::format("{} wrong values ({}:{})", *half.wrong, line.place.file, line.place.line));
  }

  static std::string members_of(const Run& run) {
    std::set<std::string> members;
    for (const auto& d : run.devices) members.insert(d.node + "/" + d.device);
    std::string text;
    for (const auto& member : members) text += member + " ";
    return text;
  }

  Builder builder_{"nccl-tests"};
  std::map<std::string, std::map<std::string, double>> groups_;  ///< by case, numbers by members
  std::set<std::string> counted_;                                ///< cases of one node with wrong values or 0
};

}  // namespace

results::Results import_nccl_tests(const std::vector<InputFile>& files) {
  std::vector<Run> runs;
  std::vector<InputFile> empty;
  std::vector<std::string> names;
  for (const auto& file : files) {
    auto of_file = read_runs(file);
    if (of_file.empty()) empty.push_back(file);
    for (Run& run : of_file) runs.push_back(std::move(run));
    names.push_back(file.path().string());
  }
  NcclImport import(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) import.add(runs[i], static_cast<int>(i));
  for (const auto& file : empty) import.add_empty(file);
  return import.finish(names);
}

}  // namespace assay::imports
