// SPDX-License-Identifier: Apache-2.0
#include "results/printable.hpp"

#include "results/rows.hpp"
#include "results/text.hpp"

namespace assay::results {
namespace {

void tidy(std::string& text) { text = printable(std::move(text), true); }
void tidy(Interned& text) {
  if (is_plain(text.str())) return;  // millions of rows: no copy of each
  if (std::string tidied = printable(text.str(), true); text != tidied) text = tidied;
}
void tidy(std::vector<std::string>& texts) {
  for (std::string& text : texts) tidy(text);
}
template <class T>
void tidy(T& /*number*/) {}

template <class Row>
void tidy_row(Row& row) {
  describe(Of<Row>{}, [&](const char*, auto member) { tidy(row.*member); });
}
template <class Row>
void tidy_rows(std::vector<Row>& rows) {
  for (Row& row : rows) tidy_row(row);
}

void tidy_case(CaseData& data) {
  for (std::string* text :
       {&data.suite, &data.name, &data.kind, &data.stage, &data.case_key, &data.started, &data.ended})
    *text = one_line(std::move(*text));
  tidy(data.reason);
  for (Metric& m : data.metrics) {
    m.name = one_line(std::move(m.name));
    m.unit = one_line(std::move(m.unit));
  }
  for (IntegerArray& a : data.arrays) {
    a.name = one_line(std::move(a.name));
    tidy(a.dims);
  }
}

}  // namespace

void make_printable(Results& r) {
  tidy_row(r.info);
  tidy_rows(r.plan);
  tidy_rows(r.environment);
  for (Entity& e : r.entities) {
    for (std::string* text : {&e.kind, &e.id, &e.id_source, &e.name}) *text = one_line(std::move(*text));
  }
  for (auto& [kind, table] : r.inventory) {
    for (auto& [column, values] : table.text) tidy(values);
  }
  for (CaseData& c : r.cases) tidy_case(c);
  tidy_rows(r.errors);
  tidy_rows(r.counters);
  tidy_rows(r.flags);
  tidy_rows(r.events);
  tidy_rows(r.selftest);
  if (!r.verdict) return;
  for (std::string* text : {&r.verdict->state, &r.verdict->basis}) *text = one_line(std::move(*text));
  tidy(r.verdict->reasons);
  tidy_rows(r.verdict->findings);
  tidy_rows(r.verdict->entities);
}

}  // namespace assay::results
