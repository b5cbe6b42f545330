// SPDX-License-Identifier: Apache-2.0
#include "results/partial.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "results/case_io.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"
#include "results/table.hpp"
#include "results/telemetry_io.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

struct StoredBundle {
  CaseBundle bundle;
  std::int64_t sequence = 0, first_entity = 0;
};

StoredBundle read_bundle(const Path& path) {
  const h5::Limits limits{check_hdf5(path).bytes};
  const h5::Id file(h5::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "cannot open the file"));
  StoredBundle out;
  const h5::Id group = h5::open_group(file, "case");
  h5::get(file, "first_entity", h5::Type::int64, &out.first_entity);
  out.bundle.data = read_case(file, "case", limits, out.sequence);
  out.bundle.data.suite = h5::get_string(file, "suite", limits);
  out.bundle.data.name = h5::get_string(file, "case", limits);
  const auto table = [&]<class Row>(const char* name, std::vector<Row>& rows) {
    if (h5::has_link(file, name)) rows = read_table<Row>(file, name, limits);
  };
  table("/entities", out.bundle.new_entities);
  table("/errors", out.bundle.errors);
  table("/counters", out.bundle.counters);
  table("/selftest", out.bundle.selftest);
  read_telemetry(file, limits, out.bundle.telemetry, out.bundle.flags);
  return out;
}

}  // namespace

std::vector<Path> case_files(const Path& partial) {
  std::vector<Path> files;
  std::error_code code;
  std::filesystem::directory_iterator entries(cases_directory(partial), code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    if (entries->path().extension() == ".h5") files.push_back(entries->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string end_to_text(const End& end) {
  Json json;
  json["state"] = end.state;
  json["ended"] = end.ended;
  json["verdict"] = verdict_to_json(end.verdict);
  return dump_sealed(json) + "\n";
}

Path case_file(const Path& cases_directory, std::int64_t sequence) {
  std::string number = std::to_string(sequence);
  number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
  return cases_directory / (number + ".h5");
}

std::string bundle_image(const CaseBundle& bundle, std::int64_t sequence, std::size_t first_entity) {
  std::size_t bytes = bundle.data.t.size() * sizeof(double);
  for (const Metric& m : bundle.data.metrics) bytes += m.values.size() * sizeof(double);
  for (const IntegerArray& a : bundle.data.arrays) bytes += a.values.size() * sizeof(std::uint64_t);
  for (const TelemetryTable& t : bundle.telemetry) bytes += t.t.size() * (t.number.size() + 1) * sizeof(double);
  const h5::Id file = h5::create_memory_file(bytes + (std::size_t{32} << 10));
  h5::put(file, "format", "assay-case");
  h5::put(file, "schema_version", Schema::get().version);
  h5::put(file, "suite", bundle.data.suite);
  h5::put(file, "case", bundle.data.name);
  h5::put(file, "first_entity", static_cast<std::int64_t>(first_entity));
  write_case(file, "case", bundle.data, sequence, false);
  const auto table = [&](const char* path, const auto& rows) {
    if (!rows.empty()) write_table(file, path, rows, false);  // an empty table would cost more than the case
  };
  table("/entities", bundle.new_entities);
  table("/errors", bundle.errors);
  table("/counters", bundle.counters);
  table("/selftest", bundle.selftest);
  write_telemetry(file, bundle.telemetry, bundle.flags, nullptr);
  std::string image = h5::memory_image(file);
  seal(image);
  return image;
}

PartialReader::PartialReader(const Path& partial) : partial_(partial) {
  std::error_code code;
  if (!std::filesystem::is_directory(partial, code)) throw_usage("there is no directory " + partial.string());
  const auto sealed = [&](const char* name) {
    try {
      return parse_sealed(read_file(partial / name));
    } catch (const Error& error) {
      throw Error(ErrorKind::data, (partial / name).string() + ": " + error.what());
    }
  };
  if (!std::filesystem::exists(partial / "plan.json", code)) {
    throw Error(ErrorKind::data, partial.string() + " holds no plan.json: nothing was measured into it");
  }
  try {
    start = start_from_json(sealed("plan.json"));
    check_start(start);
    if (std::filesystem::exists(partial / "end.json", code)) {
      const Json json = sealed("end.json");
      end = End{json.at("state"), json.at("ended"), verdict_from_json(json.at("verdict"))};
    }
  } catch (const Json::exception&) {
    throw Error(ErrorKind::data,
                partial.string() + " was written by another version of assay, or is damaged");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::internal) throw;
    throw Error(ErrorKind::data, (partial / "plan.json").string() + ": " + error.what());
  }
  read_events();
}

void PartialReader::note_damage(const std::string& text) {
  damaged = true;
  events.push_back({0, -1, "damaged", one_line(text)});
}

void PartialReader::read_events() {
  std::error_code code;
  const Path path = partial_ / "events.jsonl";
  if (!std::filesystem::exists(path, code)) return;
  std::istringstream text(read_file(path));
  int wrong = 0;
  for (std::string line; std::getline(text, line);) {
    if (text.eof()) break;  // without its line end: the write that the crash cut off
    try {
      events.push_back(event_from_json(parse_sealed(line)));
    } catch (const std::exception&) {
      ++wrong;
    }
  }
  if (wrong > 0)
    note_damage("events.jsonl: " + std::to_string(wrong) +
                " lines do not fit their checksum and were skipped");
}

void PartialReader::skip_file(const Path& path, const std::string& why) {
  damaged_files.push_back(path);
  note_damage("a case was skipped: " + path.filename().string() + why);
}

void PartialReader::read_cases(const std::function<void(CaseData&&)>& each) {
  entities = start.entities;
  for (const Path& path : case_files(partial_)) {
    StoredBundle stored;
    try {
      stored = read_bundle(path);
    } catch (const std::exception& error) {
      skip_file(path, std::string(": ") + error.what());
      continue;
    }
    const std::string name = stored.bundle.data.path();
    if (file_of.contains(name)) {
      note_damage("a case was skipped: " + path.filename().string() + " repeats " + name);
      continue;
    }
    const auto first = static_cast<std::size_t>(std::max<std::int64_t>(stored.first_entity, 0));
    if (take(std::move(stored.bundle), first, path, each)) file_of.emplace(name, path);
  }
}

/// Rows that were lost with a damaged case, or that a later file brings, keep their place: otherwise all
/// references after them would shift.
void PartialReader::place(std::vector<Entity>&& added, std::size_t first) {
  constexpr std::size_t most_lost = 1'000'000;
  if (first > entities.size() + most_lost) return;
  while (entities.size() < first) {
    const std::string name = "lost:" + std::to_string(entities.size());
    entities.push_back({"link", name, "path", name, -1, -1});
  }
  for (Entity& entity : added) {
    if (first == entities.size()) {
      entities.push_back(std::move(entity));
    } else if (first >= start.entities.size()) {
      entities[first] = std::move(entity);
    }
    ++first;
  }
}

bool PartialReader::take(CaseBundle&& bundle, std::size_t first_entity, const Path& path,
                         const std::function<void(CaseData&&)>& each) {
  const auto move_to = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  place(std::move(bundle.new_entities), first_entity);
  if (const std::string problem = problem_of(bundle.data, entities.size()); !problem.empty()) {
    skip_file(path, ": " + bundle.data.path() + ": " + problem);
    return false;
  }
  for (TelemetryTable& table : bundle.telemetry) {
    if (const std::string problem = telemetry_problem(table, entities.size()); !problem.empty())
      note_damage(path.filename().string() + ": " + problem);
    else
      append(telemetry, std::move(table));
  }
  move_to(bundle.errors, errors);
  move_to(bundle.counters, counters);
  move_to(bundle.flags, flags);
  move_to(bundle.selftest, selftest);
  last_ended = std::max(last_ended, bundle.data.ended);
  each(std::move(bundle.data));
  return true;
}

RunInfo PartialReader::info(bool running) const {
  RunInfo out = start.info;
  if (end) {
    out.state = end->state;
    out.ended = end->ended;
    out.verdict = end->verdict.state;
  } else {
    out.state = running ? "running" : "aborted";
    out.ended = running ? "" : last_ended;
  }
  return out;
}

std::uint64_t merged_bytes(const Path& partial) {
  std::error_code code;
  const auto size = [&](const Path& path) {
    const auto n = std::filesystem::file_size(path, code);
    return code ? 0 : n;
  };
  std::uint64_t bytes =
      4 * size(partial / "plan.json") + 4 * size(partial / "end.json") + 2 * size(partial / "events.jsonl");
  for (const Path& path : case_files(partial)) bytes += size(path);
  return bytes + bytes / 16 + (std::uint64_t{1} << 16);
}

}  // namespace assay::results
