// SPDX-License-Identifier: Apache-2.0
#include "run/runner.hpp"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "run/assemble.hpp"
#include "run/injector.hpp"

namespace assay {
namespace {

volatile std::sig_atomic_t stop_signal = 0;  // the one thing a signal handler may write

Suite& suite_of(const Case& c, const std::vector<std::unique_ptr<Suite>>& suites) {
  for (const auto& suite : suites)
    if (suite->name() == c.suite) return *suite;
  throw Error(ErrorKind::internal, "no suite of a planned case: " + c.path());
}

std::string join(const std::map<std::string, std::string>& identity) {
  std::string out;
  for (const auto& [key, value] : identity) out += key + "=" + value + ";";
  return out;
}

/// Counter values of one node before and after a case, as text for the gather.
/// All of them in the inventory stage, which shows what can be read; later only what moved.
std::string counters_text(const CounterSet* counters, const std::string& node, const std::vector<double>& before, bool all) {
  if (counters == nullptr) return "[]";
  const auto after = counters->read();
  Json rows = Json::array();
  if (all)
    for (const auto& family : counters->unsupported_families()) rows.push_back({"node", node, family, Json(), Json()});
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto& source = counters->sources()[i];
    Json a = std::isnan(after[i]) ? Json() : Json(after[i]);
    Json b = std::isnan(before[i]) ? Json() : Json(before[i]);
    if (!all && before[i] == after[i]) continue;
    rows.push_back({source.entity_kind, source.entity_name, source.counter, b, a});
  }
  return rows.dump();
}

}  // namespace

void install_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

bool stop_requested() noexcept { return stop_signal != 0; }

std::string Runner::decide(const Case& c, double required_left_s) const {
  if (!c.required) {
    const double elapsed = now_s() - parts_.run_start_s;
    if (elapsed + c.expected_s() + required_left_s > parts_.plan.budget_s * 0.97) return "budget";
  }
  return "";
}

bool Runner::run_all() {
  double required_left_s = parts_.plan.required_s();
  std::size_t done = 0;
  for (const Case& c : parts_.plan.cases) {
    ++done;
    if (!c.not_applicable.empty()) continue;
    if (c.required) required_left_s -= c.expected_s();
    const double stop = parts_.world.max(stop_requested() ? static_cast<double>(stop_signal) : 0.0);
    if (stop > 0) {
      why_ = fmt::format("signal {} ({}) asked for an end", static_cast<int>(stop), strsignal(static_cast<int>(stop)));
      return false;
    }
    const std::string skip = parts_.world.broadcast_text(decide(c, required_left_s), 0);
    if (parts_.progress != nullptr) parts_.progress->show(done, parts_.plan.cases.size(), c.path());
    if (skip.empty())
      run_case(c);
    else
      skip_case(c, skip);
    if (!stored_everywhere()) return false;
  }
  return true;
}

CaseRecord Runner::measure(const Case& c, std::string& started) {
  CaseRecord record;
  started = utc_now_iso();
  const double begin = now_s();
  Context context{parts_.config,
                  parts_.topology,
                  parts_.entities,
                  parts_.device,
                  parts_.world,
                  parts_.node,
                  parts_.leaders,
                  RandomStream(parts_.config.seed, "case").child(c.path()),
                  parts_.run_start_s,
                  begin + c.deadline_s,
                  record,
                  parts_.entities.device_of_rank(parts_.world.rank()),
                  parts_.injector};
  try {
    Suite& suite = suite_of(c, parts_.suites);
    if (parts_.injector != nullptr) parts_.injector->begin_case(c, suite.metrics(), parts_.world);
    suite.run(c, context);
  } catch (const Error& e) {
    record.set_state(results::CaseState::error, e.what());
  } catch (const std::exception& e) {
    record.set_state(results::CaseState::error, fmt::format("unexpected: {}", e.what()));
  }
  if (parts_.injector != nullptr) parts_.injector->end_case(record);
  record.wall_s_ = now_s() - begin;
  return record;
}

void Runner::run_case(const Case& c) {
  const auto before = parts_.counters != nullptr ? parts_.counters->read() : std::vector<double>{};
  std::string started;
  const CaseRecord record = measure(c, started);
  const auto counters = parts_.world.gather_text(counters_text(parts_.counters, parts_.topology.my_node().hostname, before, c.stage == Stage::inventory), 0);
  const auto texts = parts_.world.gather_text(record.serialize(), 0);
  if (parts_.writer == nullptr) return;
  Json all = Json::array();
  for (const auto& text : counters)
    for (const auto& row : Json::parse(text)) all.push_back(row);
  store(c, texts, started, all);
}

void Runner::skip_case(const Case& c, const std::string& reason) {
  if (parts_.writer == nullptr) return;
  CaseRecord record;
  record.set_state(results::CaseState::skip, reason);
  store(c, {record.serialize()}, utc_now_iso(), Json::array());
}

void Runner::store(const Case& c, const std::vector<std::string>& texts, const std::string& started,
                   const Json& counters) {
  try {
    std::vector<CaseRecord> records;
    records.reserve(texts.size());
    for (const auto& text : texts) records.push_back(CaseRecord::deserialize(text));
    write(c, records, started, counters);
  } catch (const std::exception& e) {
    why_ = e.what();  // told to all ranks by stored_everywhere
  }
}

void Runner::write(const Case& c, const std::vector<CaseRecord>& records, const std::string& started,
                   const Json& counters) {
  auto bundle = assemble(c, records, parts_.entities, join(parts_.device.identity()) + parts_.world.path());
  bundle.data.started = started;
  bundle.data.ended = utc_now_iso();
  for (const auto& row : counters) {
    results::CounterRow counter;
    counter.case_path = c.path();
    counter.entity = parts_.entities.find(row[0], row[1]);
    counter.counter = row[2];
    counter.before = row[3].is_null() ? results::not_taken : row[3].get<double>();
    counter.after = row[4].is_null() ? results::not_taken : row[4].get<double>();
    bundle.counters.push_back(counter);
  }
  parts_.writer->add_case(bundle);
  for (const CaseRecord& record : records)
    for (results::EventRow event : record.events_) {
      event.t = now_s() - parts_.run_start_s;
      parts_.writer->add_event(event);
    }
}

bool Runner::stored_everywhere() {
  why_ = parts_.world.broadcast_text(why_, 0);
  return why_.empty();
}

}  // namespace assay
