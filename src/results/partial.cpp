// SPDX-License-Identifier: Apache-2.0
#include "results/partial.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "results/archive.hpp"
#include "results/case_io.hpp"
#include "results/described.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"
#include "results/table.hpp"
#include "results/telemetry_io.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

StoredBundle read_bundle(const InputFile& input, const std::shared_ptr<ValueCache>& cache) {
  const h5::Limits limits{check_hdf5(input).bytes};
  const h5::Id file = h5::open_file(input);
  StoredBundle out;
  const h5::Id group = h5::open_group(file, "case");
  h5::get(file, "first_entity", h5::Type::int64, &out.first_entity);
  ValueSource source;
  if (cache)
    source = {std::make_shared<const StoredFile>(cache->file(input.path(), limits.file_bytes)), cache};
  out.bundle.data = read_case(file, "case", limits, out.sequence, cache ? &source : nullptr);
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

/// What became of a case file: its content, or why it has none.
using EachRead = std::function<void(const Path&, StoredBundle*, const std::string& why)>;

void read_here(const InputFile& file, const EachRead& each,
               const std::shared_ptr<ValueCache>& cache = nullptr) {
  StoredBundle stored;
  std::string why;
  try {
    stored = read_bundle(file, cache);
  } catch (const std::exception& error) {
    why = error.what();
  }
  each(file.path(), why.empty() ? &stored : nullptr, why);
}

/// A reading process opens so many files before it reads the first: fewer than any system lets it have open.
constexpr std::size_t most_open = 200;

/// One process reads some of them one after the other; when it is lost over a file, another one goes on
/// behind that file.
void read_elsewhere(const std::vector<Path>& files, const EachRead& each) {
  std::size_t at = 0;
  std::exception_ptr ours;  // what `each` throws says nothing about the files
  const auto give = [&](StoredBundle* stored, const std::string& why) {
    const Path& path = files[at++];
    try {
      each(path, stored, why);
    } catch (...) {
      ours = std::current_exception();
      throw;
    }
  };
  const auto read = [&](const Inputs& inputs, Sink& sink) {
    Packer out(sink);
    for (const InputFile& input : inputs)
      read_here(input, [&](const Path&, const StoredBundle* stored, const std::string& why) {
        out.put(why);
        if (stored != nullptr) out.put(*stored);
        sink.flush();
      });
  };
  std::size_t end = 0;
  const auto take = [&](Source& source) {
    Unpacker in(source);
    while (at < end) {
      std::string why;
      in.get(why);
      StoredBundle stored;
      if (why.empty()) in.get(stored);
      give(why.empty() ? &stored : nullptr, why);
    }
  };
  while (at < files.size()) {
    std::vector<std::string> names;
    end = std::min(files.size(), at + most_open);
    for (std::size_t i = at; i < end; ++i) names.push_back(files[i].string());
    try {
      read_confined(names, read, take);
    } catch (const Error& error) {
      if (ours) std::rethrow_exception(ours);
      if (error.kind() != ErrorKind::data || at == end) throw;
      const std::string text = error.what();
      const auto found = text.find(": reading it");
      give(nullptr, found == std::string::npos ? text : text.substr(found + 2));
    }
  }
}

}  // namespace

template <class V>
void members(Of<StoredBundle>, V&& v) {
  v(&StoredBundle::bundle), v(&StoredBundle::sequence), v(&StoredBundle::first_entity);
}
template <class V>
void members(Of<End>, V&& v) {
  v(&End::state), v(&End::ended), v(&End::verdict);
}

std::vector<Path> case_files(const Path& partial) {
  std::vector<Path> files = entries_of(cases_directory(partial));
  std::erase_if(files, [](const Path& path) { return path.extension() != ".h5"; });
  std::ranges::sort(files, {}, [](const Path& f) { return std::pair(f.native().size(), f.native()); });
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

namespace {

std::size_t bytes_of(const CaseBundle& bundle) {
  std::size_t bytes = bundle.data.t.size() * sizeof(double);
  for (const Metric& m : bundle.data.metrics) bytes += m.values.size() * sizeof(double);
  for (const IntegerArray& a : bundle.data.arrays) bytes += a.values.size() * sizeof(std::uint64_t);
  bytes += bundle.telemetry.t.size() * (bundle.telemetry.number.size() + 2) * sizeof(double);
  return bytes + bundle.counters.size() * sizeof(CounterRow);
}

void fill(hid_t file, const CaseBundle& bundle, std::int64_t sequence, std::size_t first_entity) {
  h5::put(file, "format", "assay-case");
  h5::put(file, "schema_version", Schema::get().version);
  h5::put(file, "suite", bundle.data.suite);
  h5::put(file, "case", bundle.data.name);
  h5::put(file, "first_entity", static_cast<std::int64_t>(first_entity));
  write_case(file, "case", bundle.data, sequence, nullptr);
  const auto table = [&](const char* path, const auto& rows) {
    if (!rows.empty()) write_table(file, path, rows, false);  // an empty table would cost more than the case
  };
  table("/entities", bundle.new_entities);
  table("/errors", bundle.errors);
  table("/counters", bundle.counters);
  table("/selftest", bundle.selftest);
  write_telemetry(file, bundle.telemetry, bundle.flags, false);
}

std::string bundle_image(const CaseBundle& bundle, std::int64_t sequence, std::size_t first_entity) {
  const h5::Id file = h5::create_memory_file(bytes_of(bundle) + (std::size_t{32} << 10));
  fill(file, bundle, sequence, first_entity);
  std::string image = h5::memory_image(file);
  seal(image);
  return image;
}

}  // namespace

void write_bundle(const Path& path, const CaseBundle& bundle, std::int64_t sequence, std::size_t first_entity,
                  const std::function<void(std::size_t)>& spend) {
  // One write of an image is faster while it is small; a large one would be in memory two times more.
  constexpr std::size_t large = std::size_t{4} << 20;
  if (bytes_of(bundle) < large) {
    const std::string image = bundle_image(bundle, sequence, first_entity);
    spend(image.size());
    return write_durable(path, image);
  }
  make_durable(path, [&](const Path& temporary) {
    try {
      h5::Id file = h5::create_file(temporary);
      fill(file, bundle, sequence, first_entity);
      file.close("cannot write " + path.string());
    } catch (const Error& error) {
      throw Error(error.kind() == ErrorKind::hdf5 ? ErrorKind::io : error.kind(), error.what());
    }
    seal_file(temporary);
    spend(std::filesystem::file_size(temporary));
  });
}

PartialReader::PartialReader(const Path& partial, Trust trust, std::shared_ptr<ValueCache> cache)
    : partial_(partial), trust_(trust), cache_(std::move(cache)) {
  std::error_code code;
  if (!std::filesystem::is_directory(partial, code)) throw_usage("there is no directory " + partial.string());
  check_cases(partial);
  const std::vector<std::string> files{partial / "plan.json", partial / "end.json", partial / "events.jsonl"};
  if (trust == Trust::own) {
    read_start(Inputs(files.begin(), files.end()));
    return;
  }
  read_confined(
      files,
      [&](const Inputs& inputs, Sink& sink) {
        read_start(inputs);
        Packer out(sink);
        out.put(start), out.put(end), out.put(events), out.put(damaged);
      },
      [&](Source& source) {
        Unpacker in(source);
        in.get(start), in.get(end), in.get(events), in.get(damaged);
      });
  try {
    check_start(start);
  } catch (const Error& error) {
    throw Error(ErrorKind::data, (partial / "plan.json").string() + ": " + error.what());
  }
}

/// `files`: plan.json, end.json, events.jsonl.
void PartialReader::read_start(const Inputs& files) {
  const Path& partial = partial_;
  const auto sealed = [&](const InputFile& file) {
    try {
      return parse_sealed(file.text());
    } catch (const Error& error) {
      throw Error(ErrorKind::data, file.path().string() + ": " + error.what());
    }
  };
  if (!files[0].exists()) {
    if (partial.extension() != ".partial")
      throw Error(ErrorKind::data, partial.string() +
                                       " is a directory: a results file or the .partial directory of a run "
                                       "is wanted (assay verdict judges a directory)");
    throw Error(ErrorKind::data, partial.string() + " holds no plan.json: nothing was measured into it");
  }
  try {
    start = start_from_json(sealed(files[0]));
    check_start(start);
    if (files[1].exists()) {
      const Json json = sealed(files[1]);
      end = End{json.at("state"), json.at("ended"), verdict_from_json(json.at("verdict"))};
    }
  } catch (const Json::exception&) {
    throw Error(ErrorKind::data,
                partial.string() + " was written by another version of assay, or is damaged");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::internal) throw;
    throw Error(ErrorKind::data, (partial / "plan.json").string() + ": " + error.what());
  }
  read_events(files[2]);
}

void PartialReader::note_damage(const std::string& text) {
  damaged = true;
  events.push_back({0, -1, damage_event, one_line(text)});
}

void PartialReader::read_events(const InputFile& file) {
  if (!file.exists()) return;
  std::istringstream text(file.text());
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
  ++skipped_cases;
  note_damage("a case was skipped: " + path.filename().string() + why);
}

void PartialReader::read_cases(const Each& each, const EachFile& each_file) {
  entities = start.entities;
  constexpr std::uint64_t always = 1'000'000, row_bytes = 32;  // of a link in its file: more, it has names
  placeable_ = always + merged_bytes(partial_) / row_bytes;
  const auto one = [&](const Path& path, StoredBundle* stored, const std::string& why) {
    if (stored == nullptr) {
      skip_file(path, ": " + why);
      return;
    }
    const std::string name = stored->bundle.data.path();
    if (file_of.contains(name)) return skip_file(path, " repeats " + name);
    take(std::move(*stored), path, each, each_file);
  };
  const auto files = case_files(partial_);
  if (trust_ == Trust::others) return read_elsewhere(files, one);
  for (const Path& file : files) read_here(file, one, cache_);
}

/// Rows that were lost with a damaged case, or that a later file brings, keep their place: otherwise all
/// references after them would shift. A forged number takes no more memory than files of this size may.
void PartialReader::place(std::vector<Entity>&& added, std::size_t first) {
  const std::size_t lost = first - std::min(first, entities.size());
  if (lost > placeable_) return;
  placeable_ -= lost;
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

/// Whether its case can be used; telemetry that cannot is left out.
bool PartialReader::acceptable(CaseBundle& bundle, const Path& path) {
  if (const std::string problem = problem_of(bundle.data, entities.size()); !problem.empty()) {
    skip_file(path, ": " + bundle.data.path() + ": " + problem);
    return false;
  }
  if (const std::string problem = telemetry_problem(bundle.telemetry, entities.size()); !problem.empty()) {
    note_damage(path.filename().string() + ": " + problem);
    bundle.telemetry = {};
  }
  return true;
}

void PartialReader::take(StoredBundle&& stored, const Path& path, const Each& each,
                         const EachFile& each_file) {
  const auto move_to = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  CaseBundle& bundle = stored.bundle;
  stored.first_entity = std::max<std::int64_t>(stored.first_entity, 0);
  std::vector<Entity> added = bundle.new_entities;
  place(std::move(added), static_cast<std::size_t>(stored.first_entity));
  if (!acceptable(bundle, path)) return;
  file_of.emplace(bundle.data.path(), path);
  if (each_file) each_file(path, stored);
  telemetry.append(std::move(bundle.telemetry));
  move_to(bundle.errors, errors);
  move_to(bundle.counters, counters);
  move_to(bundle.flags, flags);
  move_to(bundle.selftest, selftest);
  last_ended = std::max(last_ended, bundle.data.ended);
  each(std::move(bundle.data));
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
