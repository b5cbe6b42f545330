// SPDX-License-Identifier: Apache-2.0
#include "run/run_file.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "results/carry.hpp"
#include "results/disk.hpp"
#include "results/reader.hpp"
#include "run/assemble.hpp"
#include "run/controller.hpp"
#include "run/unfinished.hpp"

namespace assay {

std::filesystem::path file_of_segment(const Config& config, int segment) {
  if (config.segments() == 1) return config.out;
  std::filesystem::path file = config.out;
  const std::string extension = file.extension().string();
  return file.replace_extension().string() + fmt::format("-seg{:02}{}", segment, extension);
}

void check_new_files(const Config& config, int first) {
  for (int segment = first; segment <= config.segments(); ++segment) {
    const auto file = file_of_segment(config, segment);
    results::check_replaceable(file, config.force);
    if (!config.force) results::check_no_partial(file);
  }
}

void RunFile::open(const Config& config, EntityTable& entities, results::Writer::Start start, int segment) {
  using results::Writer;
  entities_ = &entities;
  const std::string spool = config.options.text("spool");
  if (config.carries_over()) {
    const auto earlier = results::load_earlier(config.resume);
    results::check_carry_over(config.resume, earlier, start);
    start.info.injected = start.info.injected || earlier.info.injected;
    results::extend_start(earlier, start);
    writer_ = std::make_unique<Writer>(Writer::create(config.out, start, config.force, spool));
    entities.adopt(results::carry_over(*writer_, earlier, start));
    return;
  }
  // Else a chain would end where its second file cannot be made.
  if (segment == 1) check_new_files(config, 2);
  writer_ = std::make_unique<Writer>(
      config.resume.empty() ? Writer::create(file_of_segment(config, segment), start, config.force, spool)
                            : Writer::resume(config.resume, start, config.force));
  if (!config.resume.empty()) entities.adopt(writer_->known_entities());
}

void RunFile::discard() noexcept {
  if (writer_) writer_->discard();
  writer_.reset();
}

void RunFile::all_ready(double run_start_s, const std::string& identity) {
  run_start_s_ = run_start_s;
  identity_ = identity;
  writer_->go_on();
}

void RunFile::begin_case() { case_started_ = utc_now_iso(); }

void RunFile::write(const Case& c, std::vector<CaseRecord> records, const NodeNews& news, bool all) {
  std::vector<results::EventRow> events;
  for (CaseRecord& record : records)
    std::move(record.events_.begin(), record.events_.end(), std::back_inserter(events));
  auto unfinished = all ? take_unfinished(c, records, *entities_) : std::nullopt;
  auto bundle = assemble(c, std::move(records), *entities_, identity_);
  bundle.data.started = case_started_;
  bundle.data.ended = utc_now_iso();
  if (unfinished) {
    bundle.data.parameters[results::unfinished_parameter] = unfinished->text;
    bundle.data.parameters[results::unfinished_parts_parameter] = unfinished->parts;
  }
  for (const std::string& counters : news.counters) add_counters(Json::parse(counters), *entities_, bundle);
  for (const std::string& telemetry : news.telemetry)
    add_telemetry(Json::parse(telemetry), *entities_, bundle);
  for (const results::EventRow& event : events)
    writer_->add_event(
        {now_s() - run_start_s_, event.entity, event.kind, event.text, event.finding, event.case_path});
  writer_->add_case(bundle);
  if (!unfinished) return;
  if (auto rest = assemble_unfinished(c, std::move(*unfinished), *entities_, identity_)) {
    rest->data.started = bundle.data.started;
    rest->data.ended = bundle.data.ended;
    writer_->add_case(*rest);
  }
}

void RunFile::write_state(const Case& c, results::CaseState state, const std::string& reason) {
  CaseRecord record;
  record.set_state(state, reason);
  write(c, {record}, {});
}

void RunFile::event(int entity, const std::string& kind, const std::string& text, const std::string& finding,
                    const std::string& case_path) {
  writer_->go_on();  // also where a rank is lost before all are ready
  writer_->add_event({run_start_s_ > 0 ? now_s() - run_start_s_ : 0, entity, kind, text, finding, case_path});
}

}  // namespace assay
