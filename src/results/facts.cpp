// SPDX-License-Identifier: Apache-2.0
#include "results/facts.hpp"

#include <iterator>
#include <utility>

#include "results/counter_class.hpp"

namespace assay::results {
namespace {

template <class Row>
void put_behind(std::vector<Row>& rows, std::vector<Row>&& more) {
  rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Bytes that moved and throttled clocks belong to the samples of their case, which are replaced.
bool is_error_that_rose(const CounterRow& row) {
  if (!(row.after > row.before)) return false;
  const CounterClass kind = counter_class(row.counter);
  return kind == CounterClass::uncorrectable || kind == CounterClass::correctable;
}

}  // namespace

Facts facts_of(const CaseBundle& bundle) {
  Facts out;
  out.errors = bundle.errors;
  for (const CounterRow& row : bundle.counters)
    if (is_error_that_rose(row)) out.counters.push_back(row);
  return out;
}

std::set<std::string> cases_with_facts(const Results& results) {
  std::set<std::string> out;
  for (const Miscompare& row : results.errors) out.insert(row.case_path);
  for (const CounterRow& row : results.counters)
    if (is_error_that_rose(row)) out.insert(row.case_path);
  return out;
}

void add_facts(Facts&& facts, CaseBundle& bundle) {
  put_behind(facts.errors, std::move(bundle.errors));
  put_behind(facts.counters, std::move(bundle.counters));
  bundle.errors = std::move(facts.errors);
  bundle.counters = std::move(facts.counters);
}

}  // namespace assay::results
