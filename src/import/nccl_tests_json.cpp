// SPDX-License-Identifier: Apache-2.0
// The file that nccl-tests writes with -J: {"version": 2, "args": [...], "config": {"devices": [...]},
// "results": [{"size":
// ..., "out_of_place": {"time": us, "alg_bw": GB/s, "bus_bw": GB/s, "nwrong": n}, "in_place": {...}}]}.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json.hpp"
#include "import/nccl_tests.hpp"

namespace assay::imports::nccl {
namespace {

constexpr int deepest = 32;

/// The member of an object; null when it is not there.
const Json* member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

class JsonRun {
 public:
  JsonRun(const Json& root, std::string file) : root_(root), file_(std::move(file)) {}

  Run read() {
    const Json* args = member(root_, "args");
    if (args != nullptr && args->is_array() && !args->empty() && args->front().is_string())
      run_.operation =
          operation_in(std::filesystem::path(args->front().get<std::string>()).filename().string());
    const Json* config = member(root_, "config");
    const Json* devices = config == nullptr ? nullptr : member(*config, "devices");
    if (devices != nullptr && devices->is_array())
      for (const Json& device : *devices) read_device(device);
    if (config != nullptr) read_config(*config);
    const Json* results = member(root_, "results");
    // A test that stops before its results has what comes before them.
    if ((results == nullptr || !results->is_array()) && member(root_, "nccl_version") == nullptr)
      fail({file_, 0}, "is no output of nccl-tests (no list 'results')");
    if (results != nullptr)
      for (const Json& result : *results) read_line(result);
    read_end();
    return std::move(run_);
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail({file_, 0}, fmt::format("results[{}]: {}", run_.lines.size(), what));
  }

  std::string text(const Json& object, const char* name) const {
    const Json* value = member(object, name);
    if (value == nullptr) return "";
    if (value->is_string()) return std::string(trimmed(value->get<std::string>()));
    return value->is_number_integer() ? std::to_string(value->get<std::int64_t>()) : "";
  }

  double number(const Json& object, const char* name) const {
    const Json* value = member(object, name);
    if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>()) ||
        value->get<double>() < 0)
      wrong(std::string("'") + name + "' is no number from 0");
    return value->get<double>();
  }

  void read_device(const Json& device) {
    RankDevice out{text(device, "hostname"), text(device, "device"), text(device, "device_info")};
    out.rank = whole(device, "rank", -1);
    out.group = whole(device, "group", 0);
    if (out.node.empty() || out.device.empty())
      fail({file_, 0}, fmt::format("devices[{}]: hostname or device is missing", run_.devices.size()));
    run_.devices.push_back(std::move(out));
  }

  /// What is absent or no whole number from 0 is `otherwise`.
  static std::int64_t whole(const Json& object, const char* name, std::int64_t otherwise) {
    constexpr double most = 1e9;
    const Json* value = member(object, name);
    const bool good = value != nullptr && value->is_number_integer() && value->get<double>() >= 0 &&
                      value->get<double>() <= most;
    return good ? value->get<std::int64_t>() : otherwise;
  }

  void read_config(const Json& config) {
    run_.graph = whole(config, "graph", 0) > 0;
    add_unlisted(whole(config, "nthreads", 0) * whole(config, "ngpus", 0));
  }

  /// Of a process with several devices the list has the first one. They have numbers that follow each other.
  void add_unlisted(std::int64_t of_process) {
    constexpr std::int64_t most = 1024;
    if (of_process < 2 || of_process > most) return;
    std::vector<RankDevice> all;
    for (std::size_t i = 0; i < run_.devices.size(); ++i) {
      const RankDevice& first = run_.devices[i];
      std::int64_t number = 0;
      const bool last = i + 1 == run_.devices.size();
      const bool alone = first.rank >= 0 && first.rank % of_process == 0 &&
                         (last || run_.devices[i + 1].rank == first.rank + of_process);
      if (!alone || !parse_whole(first.device, number) || number < 0 || number > most) return;
      for (std::int64_t k = 0; k < of_process; ++k) {
        all.push_back(first);
        all.back().rank = first.rank + k;
        all.back().device = std::to_string(number + k);
      }
    }
    run_.devices = std::move(all);
  }

  /// What stands behind the results of a test that was not stopped.
  void read_end() {
    const Json* bounds = member(root_, "out_of_bounds");
    run_.ended = bounds != nullptr;
    const Json* count = bounds == nullptr ? nullptr : member(*bounds, "count");
    if (count == nullptr || !count->is_number()) return;
    run_.out_of_bounds = count->get<double>();
    if (text(*bounds, "okay") == "false") run_.out_of_bounds = std::max(*run_.out_of_bounds, 1.0);
  }

  Half read_half(const Json& body, const Json* iterations, bool in_place) const {
    Half half;
    half.in_place = in_place;
    half.time_s = number(body, member(body, "time") != nullptr ? "time" : "cpu_time") * 1e-6;
    half.algbw = number(body, "alg_bw") * 1e9;
    half.busbw = number(body, "bus_bw") * 1e9;
    half.checked = member(body, "nwrong") != nullptr;
    if (half.checked) half.wrong = number(body, "nwrong");
    const Json* times = iterations == nullptr ? nullptr : member(*iterations, "times_us");
    if (times == nullptr || !times->is_array()) return half;
    for (const Json& time : *times) {
      if (!time.is_number() || !(time.get<double>() > 0)) wrong("'times_us' holds a value that is no time");
      half.times_s.push_back(time.get<double>() * 1e-6);
    }
    return half;
  }

  static bool is_cpu_time(const Json& result) {
    const Json *out = member(result, "out_of_place"), *in = member(result, "in_place");
    return (out != nullptr && member(*out, "cpu_time") != nullptr) ||
           (in != nullptr && member(*in, "cpu_time") != nullptr);
  }

  void read_line(const Json& result) {
    Line line;
    line.place = {file_, 0};
    const double bytes = number(result, "size");
    if (bytes > 9e15) wrong("'size' is too large");
    line.bytes = static_cast<std::int64_t>(bytes);
    line.type = text(result, "type");
    line.redop = text(result, "redop");
    for (const bool in_place : {false, true}) {
      const Json* body = member(result, in_place ? "in_place" : "out_of_place");
      if (body == nullptr) continue;
      line.halves.push_back(read_half(
          *body, member(result, in_place ? "in_place_per_iter" : "out_of_place_per_iter"), in_place));
    }
    run_.cpu_time = run_.cpu_time || is_cpu_time(result);
    if (line.halves.empty()) wrong("neither out_of_place nor in_place is there");
    run_.lines.push_back(std::move(line));
  }

  const Json& root_;
  std::string file_;
  Run run_;
};

}  // namespace

Run read_json(const std::string& text, const std::string& file) {
  // Depth is bounded before anything is built: the parser itself would recurse as deep as the text asks for.
  bool deep = false;
  const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > deepest;
    return !deep;
  };
  Json root;
  try {
    root = Json::parse(text, shallow);
  } catch (const Json::parse_error& e) {
    if (!deep && e.byte > text.size()) {
      Run run;
      run.cut = true;
      return run;
    }
    std::size_t line = 1;
    for (std::size_t i = 0; i < e.byte && i < text.size(); ++i) line += text[i] == '\n' ? 1 : 0;
    fail({file, line}, "is no JSON");
  } catch (const Json::out_of_range&) {
    fail({file, 0}, "holds a number that is too large");
  }
  if (deep) fail({file, 0}, "is nested too deeply");
  return JsonRun(root, file).read();
}

}  // namespace assay::imports::nccl
