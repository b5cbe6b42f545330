// SPDX-License-Identifier: Apache-2.0
#include "simulate/cases.hpp"

#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "base/error.hpp"

namespace assay::simulate {
namespace {

using results::CaseData;
using results::Metric;
using results::Role;

constexpr double typical_clock_hz = 1.7e9;

/// Sample coordinates: blocks of equal length as far as that goes.
void lay_out(CaseData& c, const CaseSchedule& schedule, std::size_t entities) {
  for (std::int64_t s = 0; s < schedule.samples; ++s) {
    c.sample.push_back(static_cast<std::int32_t>(s));
    c.block.push_back(static_cast<std::int32_t>(s * schedule.blocks / schedule.samples));
  }
  const double step = schedule.retest ? retest_sample_s : sample_s;
  c.count.assign(entities, static_cast<std::int32_t>(schedule.samples));
  c.t.resize(entities * c.samples());
  for (std::size_t e = 0; e < entities; ++e)
    for (std::size_t s = 0; s < c.samples(); ++s)
      c.t[e * c.samples() + s] = schedule.start_s + step * static_cast<double>(s);
  c.shares.wall_s = c.shares.timed_s = step * static_cast<double>(schedule.samples);
}

Metric metric_of(const MetricModel& m, std::size_t size) {
  Metric out{m.metric, m.unit, m.better, true, Role::metric, true, {}, m.judging, m.title};
  out.values.resize(size);
  return out;
}

/// From the log of a rate to a value in the metric's unit.
double value_of(const MetricModel& m, double log_rate) {
  return m.typical * std::exp(m.better == results::Better::lower ? -log_rate : log_rate);
}

std::uint64_t sample_index(std::uint64_t who, std::size_t sample) { return (who << 12) | sample; }

/// The samples of one entity around its true rate.
class SampleNoise {
 public:
  SampleNoise(const Machine& machine, const std::string& path)
      : heavy_(machine.spec().noise == Noise::heavy),
        cv_(machine.spec().within_cv),
        spikes_(machine.spec().spike_share),
        draw_(machine.run_stream(path + "/noise")) {}
  double operator()(std::uint64_t who, std::size_t sample) const {
    const std::uint64_t index = sample_index(who, sample);
    if (!heavy_) return cv_ * draw_.normal(index);
    const double spike = draw_.uniform(index, 5) < spikes_ ? spike_mean * draw_.exponential(index, 6) : 0;
    return cv_ * draw_.heavy(index, 3) - spike;
  }

 private:
  bool heavy_;
  double cv_, spikes_;
  Draw draw_;
};

/// What a link gives around its true rate. Other traffic lasts longer than a sample: a link that has it in
/// a round has it in all samples of the round.
class LinkNoise {
 public:
  LinkNoise(const Machine& machine, const RandomStream& stream)
      : link_cv_(machine.spec().link_cv),
        sample_cv_(machine.spec().within_cv),
        spikes_(machine.spec().spike_share),
        draw_(stream) {}
  double operator()(std::size_t round, std::size_t sample) const {
    const std::uint64_t at = std::uint64_t{1} << 32 | round;
    const double spike = draw_.uniform(at, 2) < spikes_ ? spike_mean * draw_.exponential(at, 3) : 0;
    return link_cv_ * draw_.normal(at) - spike + sample_cv_ * draw_.normal(sample);
  }

 private:
  double link_cv_, sample_cv_, spikes_;
  Draw draw_;
};

void add_clock(const Machine& machine, const std::vector<std::int32_t>& rows, const std::string& path,
               CaseData& c) {
  Metric clock{"clock", "Hz", results::Better::none, false, Role::covariate, true, {}};
  clock.values.resize(rows.size() * c.samples());
  const Draw draw(machine.run_stream(path + "/clock"));
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const std::int64_t device = machine.device_at(rows[e]);
    const double steady = machine.log_clock(device);
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const double log_f = steady + machine.log_clock_fault(device, static_cast<std::int32_t>(s), c.name);
      clock.values[e * c.samples() + s] =
          typical_clock_hz *
          std::exp(log_f + 5e-4 * draw.normal(sample_index(static_cast<std::uint64_t>(rows[e]), s)));
    }
  }
  c.metrics.push_back(std::move(clock));
}

/// A device for a link's end that may be a NIC: the first device that uses it.
std::int64_t device_of_end(const Machine& machine, std::int32_t row) {
  if (const std::int64_t device = machine.device_at(row); device >= 0) return device;
  const std::int64_t nic = machine.nic_at(row);
  if (nic < 0) throw Error(ErrorKind::internal, "simulate: a link ends at row " + std::to_string(row));
  const std::int64_t per_node = machine.spec().devices_per_node, nics = machine.spec().nics_per_node;
  const std::int64_t local = ((nic % nics) * per_node + nics - 1) / nics;
  return nic / nics * per_node + local;
}

std::uint64_t link_key(const verdict::LinkEnds& ends) {
  return (std::uint64_t{static_cast<std::uint32_t>(ends.source)} << 32) |
         static_cast<std::uint32_t>(ends.destination);
}

/// The distinct links of all rounds, with the rounds that each is in.
struct LinkRows {
  std::vector<verdict::LinkEnds> ends;
  std::vector<std::vector<std::size_t>> rounds;
};

LinkRows distinct(const Rounds& rounds) {
  LinkRows links;
  std::unordered_map<std::uint64_t, std::size_t> known;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const auto& ends : rounds[r]) {
      const auto [it, fresh] = known.try_emplace(link_key(ends), links.ends.size());
      if (fresh) {
        links.ends.push_back(ends);
        links.rounds.emplace_back();
      }
      links.rounds[it->second].push_back(r);
    }
  }
  return links;
}

/// Rows of the links in /entities, which grows by those it does not hold.
std::vector<std::int32_t> link_rows(const LinkRows& links, std::vector<results::Entity>& entities) {
  std::unordered_map<std::string, std::int32_t> known;
  for (std::size_t i = entities.size(); i-- > 0 && entities[i].kind == "link";)
    known.emplace(entities[i].name, static_cast<std::int32_t>(i));
  std::vector<std::int32_t> rows;
  rows.reserve(links.ends.size());
  for (const auto& ends : links.ends) {
    const auto& a = entities[static_cast<std::size_t>(ends.source)];
    const auto& b = entities[static_cast<std::size_t>(ends.destination)];
    std::string name = a.name + ">" + b.name, id = a.id + ">" + b.id;
    const auto [it, fresh] = known.try_emplace(name, static_cast<std::int32_t>(entities.size()));
    if (fresh) entities.push_back({"link", std::move(id), "path", std::move(name), 0, -1});
    rows.push_back(it->second);
  }
  return rows;
}

}  // namespace

results::CaseData case_of(const MetricModel& metric, const CaseSchedule& schedule) {
  CaseData c;
  c.suite = metric.suite;
  c.name = schedule.name;
  c.required = !schedule.retest;
  c.stage = metric.stage;
  c.parameters = metric.parameters;
  c.case_key = fmt::format("{:016x}", hash_text("simulated " + metric.suite + "/" + metric.name));
  c.kind = metric.subject == Subject::link ? "link" : "device";
  return c;
}

results::CaseData measure_devices(const Machine& machine, const MetricModel& metric,
                                  const std::vector<std::int32_t>& rows, const CaseSchedule& schedule) {
  CaseData c = case_of(metric, schedule);
  c.entity = rows;
  lay_out(c, schedule, rows.size());
  Metric m = metric_of(metric, rows.size() * c.samples());
  const std::string path = metric.suite + "/" + schedule.name + ":" + metric.metric;
  const SampleNoise noise(machine, path);
  const Draw common(machine.run_stream(path + "/common"));
  for (std::size_t e = 0; e < rows.size(); ++e) {
    const std::int64_t device = machine.device_at(rows[e]);
    if (device < 0)
      throw Error(ErrorKind::internal, "simulate: row " + std::to_string(rows[e]) + " is no device");
    const double rate = machine.log_rate(metric, device);
    const bool varies = machine.varies(metric, device);
    for (std::size_t s = 0; s < c.samples(); ++s) {
      const std::size_t at = e * c.samples() + s;
      double y = rate + noise(static_cast<std::uint64_t>(rows[e]), s);
      if (machine.spec().common > 0) y -= machine.spec().common * common.uniform(s);
      if (varies)
        y += machine.log_fault(metric, device, static_cast<std::int32_t>(s), schedule.name,
                               schedule.planned_s > 0 ? c.t[at] / schedule.planned_s : 1);
      const Fault* dead = machine.dead(metric, device, static_cast<std::int32_t>(s));
      m.values[at] = dead == nullptr ? value_of(metric, y) : dead->value;
    }
  }
  c.metrics.push_back(std::move(m));
  if (machine.spec().clock_cv > 0) add_clock(machine, rows, path, c);
  return c;
}

results::CaseData measure_links(const Machine& machine, const MetricModel& metric, const Rounds& rounds,
                                const CaseSchedule& schedule, std::vector<results::Entity>& entities) {
  CaseData c = case_of(metric, schedule);
  const LinkRows links = distinct(rounds);
  c.entity = link_rows(links, entities);
  for (const auto& ends : links.ends) {
    c.source.push_back(ends.source);
    c.destination.push_back(ends.destination);
  }
  lay_out(c, schedule, links.ends.size());
  Metric m = metric_of(metric, links.ends.size() * c.samples());
  Metric round{"round", "count", results::Better::none, false, Role::covariate, true, {}};
  round.values.resize(m.values.size());
  const RandomStream stream =
      machine.run_stream(metric.suite + "/" + schedule.name + ":" + metric.metric + "/noise");
  const bool varies = machine.links_vary();
  for (std::size_t e = 0; e < links.ends.size(); ++e) {
    const std::int64_t source = device_of_end(machine, links.ends[e].source);
    const std::int64_t destination = device_of_end(machine, links.ends[e].destination);
    const LinkNoise noise(machine, RandomStream(mix64(stream.key(), link_key(links.ends[e]))));
    double rate = machine.log_link(metric, source, destination, 0);
    for (std::size_t s = 0; s < c.samples(); ++s) {
      // The samples of a link are shared out among its rounds.
      const std::size_t in = links.rounds[e][s * links.rounds[e].size() / c.samples()];
      if (varies) rate = machine.log_link(metric, source, destination, static_cast<std::int32_t>(s));
      const Fault* dead = machine.dead_link(metric, source, destination, static_cast<std::int32_t>(s));
      m.values[e * c.samples() + s] = dead == nullptr ? value_of(metric, rate + noise(in, s)) : dead->value;
      round.values[e * c.samples() + s] = static_cast<double>(in);
    }
  }
  c.metrics.push_back(std::move(m));
  c.metrics.push_back(std::move(round));
  return c;
}

}  // namespace assay::simulate
