// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "results/case_io.hpp"
#include "results/coordinates.hpp"
#include "results/file_io.hpp"
#include "results/json_io.hpp"
#include "results/schema.hpp"
#include "results/table.hpp"
#include "results/telemetry_io.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

/// A name that is not used for a column of an inventory table.
void check_column(const std::string& kind, const std::string& column) {
  if (!is_column_name(column) || column == "row" || column == "entity") {
    throw Error(ErrorKind::internal, "inventory/" + kind + ": no column can be named \"" + column + "\"");
  }
}

void write_inventory(hid_t file, const std::map<std::string, InventoryTable>& inventory) {
  const TableSpec& spec = Schema::get().inventory;
  const h5::Id group = h5::create_group(file, spec.path);
  for (const auto& [kind, table] : inventory) {
    TableWriter writer(group, spec, kind, table.entity.size(), true);
    writer.numbers("entity", h5::Type::int32, table.entity.data());
    for (const auto& [column, values] : table.text) writer.extra_strings(column, values);
    for (const auto& [column, values] : table.number) {
      const auto unit = table.unit.find(column);
      writer.extra_numbers(column, unit == table.unit.end() ? "1" : unit->second, values);
    }
    writer.finish();
  }
}

void write_verdict(hid_t file, const VerdictData& verdict) {
  const h5::Id group = h5::create_group(file, "/verdict");
  h5::put(group, "state", verdict.state);
  h5::put(group, "exit_code", std::int32_t{verdict.exit_code});
  h5::put(group, "basis", verdict.basis);
  h5::put(group, "false_alarm_rate", verdict.false_alarm_rate);
  put_attributes(group, verdict.accounting);
  write_table(file, "/verdict/findings", verdict.findings, true);
  write_table(file, "/verdict/entities", verdict.entities, true);
  h5::create_text(file, "/verdict/inputs", dump(verdict.inputs));
  h5::create_text(file, "/verdict/json", dump(verdict_to_json(verdict)));
}

void write_cases(hid_t file, const FileContent& content) {
  const h5::Id cases = h5::create_group(file, "/cases");
  std::map<std::string, h5::Id> suites;
  std::int64_t sequence = 0;
  SharedCoordinates shared;
  content.cases([&](const CaseData& data) {
    auto at = suites.find(data.suite);
    if (at == suites.end()) at = suites.emplace(data.suite, h5::create_group(cases, data.suite)).first;
    write_case(at->second, data.name, data, sequence++, &shared);
  });
  shared.finish();
}

}  // namespace

void check_start(const Writer::Start& start) {
  const auto wrong = [](const std::string& what) { throw Error(ErrorKind::internal, what); };
  const auto entities = start.entities.size();
  for (const auto& [kind, table] : start.inventory) {
    if (!is_column_name(kind)) wrong("no inventory table can be named \"" + kind + "\"");
    const std::string where = "inventory/" + kind;
    for (const std::int32_t row : table.entity) {
      if (row < 0 || static_cast<std::size_t>(row) >= entities)
        wrong(where + " refers to no row of /entities");
    }
    for (const auto& [column, values] : table.text) {
      check_column(kind, column);
      if (values.size() != table.entity.size())
        wrong(where + "/" + column + " has another length than entity");
      if (table.number.contains(column)) wrong(where + "/" + column + " is both text and number");
    }
    for (const auto& [column, values] : table.number) {
      check_column(kind, column);
      if (values.size() != table.entity.size())
        wrong(where + "/" + column + " has another length than entity");
    }
    for (const auto& [column, unit] : table.unit) {
      if (!is_unit(unit))
        wrong(where + "/" + column + " has the unit \"" + unit + "\", which is not in the schema");
    }
  }
}

void write_file(const Path& path, const FileContent& content) {
  {
    h5::Id file = h5::create_file(path.string());
    h5::create_text(file, "/config", dump(content.config));
    write_table(file, "/plan", content.plan, true);
    write_table(file, "/environment", content.environment, true);
    h5::create_group(file, "/entities");  // has its place here, and is filled when the cases have told all
    write_inventory(file, content.inventory);
    write_cases(file, content);
    write_table(file, "/entities", content.entities, true);
    write_table(file, "/errors", content.errors, true);
    write_table(file, "/counters", content.counters, true);
    write_telemetry(file, content.telemetry, content.flags, true);
    write_table(file, "/events", content.events, true);
    write_table(file, "/selftest", content.selftest, true);
    if (content.verdict != nullptr) write_verdict(file, *content.verdict);
    h5::put(file, "format", Schema::get().format);
    h5::put(file, "schema_version", Schema::get().version);
    put_attributes(file, content.info());
    file.close("cannot write " + path.string());
  }
  seal_file(path);
  sync_file(path);
}

void write_file(const Path& path, PartialReader& partial, bool running) {
  const Writer::Start& start = partial.start;
  const auto cases = [&](const std::function<void(const CaseData&)>& each) {
    partial.read_cases([&](CaseData&& data) { each(data); });
  };
  write_file(path, {start.config, start.plan, start.environment, start.inventory, cases, partial.entities,
                    partial.errors, partial.counters, partial.telemetry, partial.flags, partial.events,
                    partial.selftest, partial.end ? &partial.end->verdict : nullptr,
                    [&] { return partial.info(running); }});
}

FileContent content_of(const Results& results, const VerdictData* verdict,
                       const std::function<RunInfo()>& info) {
  const auto cases = [&results](const std::function<void(const CaseData&)>& each) {
    std::ranges::for_each(results.cases, each);
  };
  return {results.config,
          results.plan,
          results.environment,
          results.inventory,
          cases,
          results.entities,
          results.errors,
          results.counters,
          results.telemetry,
          results.flags,
          results.events,
          results.selftest,
          verdict,
          info};
}

}  // namespace assay::results
