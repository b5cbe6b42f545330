// SPDX-License-Identifier: Apache-2.0
#include "results/reader.hpp"

#include <algorithm>
#include <new>

#include "base/error.hpp"
#include "results/archive.hpp"
#include "results/case_io.hpp"
#include "results/check_content.hpp"
#include "results/described.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"
#include "results/printable.hpp"
#include "results/table.hpp"
#include "results/telemetry_io.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

[[noreturn]] void bad(const std::string& message) { throw Error(ErrorKind::data, message); }

std::string read_text_dataset(const OpenFile& file, const std::string& path) {
  const h5::Id set = h5::open_dataset(file.id, path);
  const auto values = h5::read_strings(set, path, file.limits);
  if (values.size() != 1) bad("dataset " + path + " is not one text");
  return values[0];
}

Json read_json(const OpenFile& file, const std::string& path) {
  try {
    return parse(read_text_dataset(file, path));
  } catch (const Error& error) {
    bad("dataset " + path + ": " + error.what());
  }
}

std::map<std::string, InventoryTable> read_inventory(const OpenFile& file) {
  std::map<std::string, InventoryTable> out;
  if (!h5::is_group(file.id, "/inventory")) return out;
  const h5::Id group = h5::open_group(file.id, "/inventory");
  for (const std::string& kind : h5::children(group)) {
    const std::string path = "/inventory/" + kind;
    const TableReader reader(file.id, path, file.limits);
    InventoryTable table;
    table.entity.resize(reader.rows());
    reader.numbers("entity", h5::Type::int32, table.entity.data());
    for (const std::string& column : reader.columns()) {
      const h5::Id set = reader.open(column);
      const h5::Stored type = h5::stored_type(h5::Id(h5::check(H5Dget_type(set), column)));
      if (type == h5::Stored::string) table.text[column] = reader.strings(column);
      if (type != h5::Stored::float64) continue;
      table.number[column].resize(reader.rows());
      reader.numbers(column, h5::Type::float64, table.number[column].data());
      if (!h5::has_attribute(set, "unit")) bad("missing unit of " + path + "/" + column);
      table.unit[column] = h5::get_string(set, "unit", file.limits);
    }
    out.emplace(kind, std::move(table));
  }
  return out;
}

std::vector<CaseData> read_cases(const OpenFile& file) {
  std::vector<std::pair<std::int64_t, CaseData>> cases;
  const h5::Id top = h5::open_group(file.id, "/cases");
  for (const std::string& suite : h5::children(top)) {
    const h5::Id group = h5::open_group(top, suite);
    for (const std::string& name : h5::children(group)) {
      std::int64_t sequence = 0;
      CaseData data = read_case(file.id, "/cases/" + suite + "/" + name, file.limits, sequence);
      data.suite = suite;
      data.name = name;
      cases.emplace_back(sequence, std::move(data));
    }
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CaseData> out;
  for (auto& item : cases) out.push_back(std::move(item.second));
  return out;
}

/// Every reference into /entities leads to a row, so that later code need not check again.
void check_references(const Results& r) {
  const auto size = static_cast<std::int64_t>(r.entities.size());
  const auto check = [&](std::int32_t row, std::int32_t least, const std::string& where) {
    if (row < least || row >= size)
      bad(where + " refers to row " + std::to_string(row) + " of /entities, which has " +
          std::to_string(size));
  };
  for (const Entity& e : r.entities) check(e.parent, -1, "/entities/parent");
  for (std::size_t i = 0; i < r.entities.size(); ++i) {
    std::int64_t steps = 0;
    for (std::int32_t row = r.entities[i].parent; row >= 0;
         row = r.entities[static_cast<std::size_t>(row)].parent) {
      if (++steps > 64) bad("/entities/parent has a cycle at row " + std::to_string(i));
    }
  }
  for (const CaseData& c : r.cases) {
    if (const std::string problem = reference_problem(c, r.entities.size()); !problem.empty())
      bad("/cases/" + c.path() + ": " + problem);
  }
  for (const auto& [kind, table] : r.inventory) {
    for (const std::int32_t row : table.entity) check(row, 0, "/inventory/" + kind + "/entity");
  }
  for (const Miscompare& e : r.errors) check(e.entity, -1, "/errors/entity");
  for (const CounterRow& c : r.counters) check(c.entity, -1, "/counters/entity");
  for (const std::int32_t row : r.telemetry.entity) check(row, 0, "/telemetry");
  for (const FlagRow& f : r.flags) check(f.entity, -1, "/telemetry/flags/entity");
  for (const EventRow& e : r.events) check(e.entity, -1, "/events/entity");
  for (const SelftestRow& s : r.selftest) check(s.entity, -1, "/selftest/entity");
  if (!r.verdict) return;
  for (const EntityState& e : r.verdict->entities) check(e.entity, 0, "/verdict/entities/entity");
}

Results read_file_content(const InputFile& input) {
  const h5::Quiet quiet;
  const OpenFile file = open_results(input, check_hdf5(input));
  Results r;
  get_attributes(file.id, r.info, file.limits);
  r.config = read_json(file, "/config");
  r.plan = read_table<PlanRow>(file.id, "/plan", file.limits);
  r.environment = read_table<EnvironmentRow>(file.id, "/environment", file.limits);
  r.entities = read_table<Entity>(file.id, "/entities", file.limits);
  r.inventory = read_inventory(file);
  r.cases = read_cases(file);
  r.errors = read_table<Miscompare>(file.id, "/errors", file.limits);
  r.counters = read_table<CounterRow>(file.id, "/counters", file.limits);
  read_telemetry(file.id, file.limits, r.telemetry, r.flags);
  r.events = read_table<EventRow>(file.id, "/events", file.limits);
  complete_launch_events(r.events);
  r.selftest = read_table<SelftestRow>(file.id, "/selftest", file.limits);
  if (h5::is_group(file.id, "/verdict")) r.verdict = verdict_from_json(read_json(file, "/verdict/json"));
  check_words(r, h5::get_string(file.id, "schema_version", file.limits));
  return r;
}

Results read_partial(const Path& path, Trust trust, std::shared_ptr<ValueCache> cache = nullptr) {
  PartialReader reader(path, trust, std::move(cache));
  Results r;
  reader.read_cases([&](CaseData&& data) { r.cases.push_back(std::move(data)); });
  const auto owner = read_owner(path);
  r.info = reader.info(owner && seems_to_run(path, *owner));
  r.config = std::move(reader.start.config);
  r.plan = std::move(reader.start.plan);
  r.environment = std::move(reader.start.environment);
  r.entities = std::move(reader.entities);
  r.inventory = std::move(reader.start.inventory);
  r.errors = std::move(reader.errors);
  r.counters = std::move(reader.counters);
  r.telemetry = std::move(reader.telemetry);
  r.flags = std::move(reader.flags);
  r.events = std::move(reader.events);
  complete_launch_events(r.events);
  r.selftest = std::move(reader.selftest);
  if (reader.end) r.verdict = std::move(reader.end->verdict);
  return r;
}

}  // namespace

OpenFile open_results(const InputFile& input, const CheckedFile& checked) {
  OpenFile file;
  file.limits.file_bytes = checked.bytes;
  file.id = h5::open_file(input);
  const Schema& schema = Schema::get();
  if (!h5::has_attribute(file.id, "format") ||
      h5::get_string(file.id, "format", file.limits) != schema.format) {
    bad("is no results file of assay");
  }
  const std::string version = h5::get_string(file.id, "schema_version", file.limits);
  if (!schema.reads(version))
    bad("has schema version " + version + ", and this assay reads up to " + std::to_string(schema.major) +
        ".x");
  return file;
}

namespace {

/// Runs `read`; what goes wrong becomes one line that names the file.
template <class Read>
auto named(const Path& path, const Read& read) {
  const auto damaged = [&](const std::string& why) {
    const std::string name = path.string();
    bad(one_line(why.starts_with(name) ? why : name + ": " + why));
  };
  try {
    return read();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::usage || error.kind() == ErrorKind::resource) throw;
    damaged(error.what());
  } catch (const Json::exception&) {
    damaged("a JSON text in it does not hold what it should");
  } catch (const std::bad_alloc&) {
    damaged("needs more memory than there is");
  } catch (const std::exception& error) {
    damaged(error.what());
  }
  throw Error(ErrorKind::internal, "unreachable");
}

Results checked(Results&& r) {
  check_references(r);
  make_printable(r);
  return std::move(r);
}

}  // namespace

Results load_own(const InputFile& file) {
  return named(file.path(), [&] { return checked(read_file_content(file)); });
}

Results load_own_partial(const Path& partial, std::shared_ptr<ValueCache> cache) {
  const h5::Quiet quiet;
  if (!cache) cache = std::make_shared<ValueCache>(most_cached_bytes);
  return named(partial, [&] { return checked(read_partial(partial, Trust::own, cache)); });
}

Results read_results(const std::vector<std::string>& files,
                     const std::function<Results(const Inputs&)>& read) {
  return checked(made_confined<Results>(files, read));
}

Results load(const Path& path) {
  return named(path, [&] {
    std::error_code code;
    if (std::filesystem::is_directory(path, code)) return checked(read_partial(path, Trust::others));
    return read_results({path.string()}, [](const Inputs& inputs) {
      return named(inputs.front().path(), [&] { return read_file_content(inputs.front()); });
    });
  });
}

}  // namespace assay::results
